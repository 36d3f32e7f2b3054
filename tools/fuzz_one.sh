#!/usr/bin/env bash
# Runs one libFuzzer program for FUZZ_SECONDS, from the inputs that are kept in tests/fuzz/NAME.
# What it finds on the way stays in the build folder; an input that crashes it is named.
set -euo pipefail
program=build-fuzz/$1
name=$(basename "$program")
work=build-fuzz/found/$name
mkdir -p "$work"

corpus=("$work")
for kept in "tests/fuzz/$name" "tests/fuzz/${name#fuzz_}"; do
    [[ -d $kept ]] && corpus+=("$kept")
done

if "$program" "${corpus[@]}" -max_total_time="${FUZZ_SECONDS:-60}" -rss_limit_mb=4096 \
    -artifact_prefix="$work/crash-" >"$work.log" 2>&1; then
    grep -E '^(Done|stat::number)|^#[0-9]+.*DONE' "$work.log" | tail -n 1 | sed "s/^/$name: /"
else
    tail -n 40 "$work.log" >&2
    echo "$name: FAILED; the input is in $work, the log in $work.log" >&2
    exit 1
fi
