#!/usr/bin/env bash
# Every check that needs no test run: those that Meson knows as suites `source` and `lint`, then
# clang-tidy and cppcheck, over each source of the build once. usage: lint.sh BUILD-FOLDER [--after-test]
# (--after-test: `source` has run)
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=$1
commands=$build/lint # what the analyzers are to follow
failed=0

suites=(--suite lint)
[[ ${2:-} == --after-test ]] || suites+=(--suite source)
meson test -C "$build" --no-rebuild --print-errorlogs "${suites[@]}" || failed=1

mapfile -t sources < <("${PYTHON:-python3}" tools/lint_commands.py "$build" "$commands/compile_commands.json")
printf '\n== clang-tidy, %d files\n' "${#sources[@]}"
[[ ${#sources[@]} -gt 0 ]] || failed=1
printf '%s\n' "${sources[@]}" |
    xargs -P "$(nproc)" -n 1 clang-tidy -p "$commands" --quiet --extra-arg=-Wno-unknown-warning-option \
        2> >(grep -vE 'warnings? (generated|treated as errors?)' >&2) || failed=1

printf '\n== cppcheck\n'
cppcheck --project="$commands/cppcheck.json" --std=c11 --library=posix,gnu \
    --enable=warning,performance,portability --inline-suppr --quiet -j "$(nproc)" \
    -D__BYTE_ORDER__=1234 -D__ORDER_BIG_ENDIAN__=4321 -DUCHAR_MAX=255 \
    --suppressions-list=tools/cppcheck-suppressions.txt --error-exitcode=1 || failed=1

[[ $failed -eq 0 ]] && printf '\nlint: nothing to complain about\n'
exit $failed
