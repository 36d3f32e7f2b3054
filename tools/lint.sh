#!/usr/bin/env bash
# Every check that needs no test run: the quick ones that Meson knows as suite `source`, then
# clang-tidy and cppcheck. usage: lint.sh BUILD-FOLDER
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=$1
failed=0

meson test -C "$build" --no-rebuild --print-errorlogs --suite source || failed=1

mapfile -t sources < <(git ls-files '*.c' | grep -E '^(base|dispatcher|loader|core|cli|samples|plugins|plugin-sdk)/')
printf '\n== clang-tidy, %d files\n' "${#sources[@]}"
# GCC's own options are unknown to clang; what matters here are the includes and the standard.
printf '%s\n' "${sources[@]}" |
    xargs -P "$(nproc)" -n 4 clang-tidy -p "$build" --quiet \
        --extra-arg=-Wno-unknown-warning-option --extra-arg=-Wno-ignored-optimization-argument \
        2> >(grep -vE 'warnings? (generated|treated as errors?)' >&2) || failed=1

printf '\n== cppcheck\n'
includes=()
for layer in plugin-sdk base dispatcher loader core; do
    includes+=("-I$layer/include" "-I$build/$layer/include")
done
printf '%s\n' "${sources[@]}" |
    cppcheck --file-list=- -I. -I"$build" "${includes[@]}" --std=c11 --library=posix,gnu \
        --enable=warning,performance,portability --inline-suppr --quiet -j "$(nproc)" \
        --suppressions-list=tools/cppcheck-suppressions.txt --error-exitcode=1 || failed=1

[[ $failed -eq 0 ]] && printf '\nlint: nothing to complain about\n'
exit $failed
