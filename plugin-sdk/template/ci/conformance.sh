#!/bin/sh
# What a CI job calls, and anyone by hand: builds the plugin and runs the conformance suite on it.
#
#     ./conformance.sh             the standard set, which shows every level but Perf
#     ./conformance.sh merge       judges the logs of all shards, conformance/run-*.jsonl, as one run
#
# It fails where the level does not hold or anything fails that no list knows.
#
# By the environment:
#
#     LEVEL=load         what is to hold; raise it as the plugin grows: memory, core, full, train
#     SHARD=1/4          on the first of four machines: every fourth case, and no level is judged
#     DEVICES=0,1        those to use, or all; 0 as a rule
#     OPTIONS='...'      more of `tenon-conform run`, such as '--lists known.txt' or '--set smoke'
#     BEFORE=FOLDER      logs of earlier releases, VERSION.jsonl: trend.html shows them beside this one
#
# In conformance/ are then the log, run.xml (JUnit), run.html, run.md and trend.html.
set -eu
cd "$(dirname "$0")"
level=${LEVEL:-load}
reports='--junit conformance/run.xml --html conformance/run.html --markdown conformance/run.md --without-unsupported'

if [ "${1:-}" = merge ]; then
    status=0
    # shellcheck disable=SC2086 # words are wanted
    tenon-conform report conformance/run-*.jsonl --level "$level" $reports || status=$?
    grep -m 1 ' passed, ' conformance/run.md
    exit $status
fi

[ -d build ] || meson setup build
meson compile -C build
mkdir -p conformance
if [ -n "${SHARD:-}" ]; then
    log=conformance/run-${SHARD%/*}.jsonl
    set -- --shard "$SHARD"
else
    log=conformance/run.jsonl
    set -- --level "$level"
fi
rm -f "$log"
status=0
# shellcheck disable=SC2086 # words are wanted
tenon-conform run build/libtenon_yourtype.so --device "${DEVICES:-0}" --log "$log" "$@" $reports ${OPTIONS:-} || status=$?

# `ls -v` puts 1.9 before 1.10.
if [ -n "${BEFORE:-}" ]; then
    # shellcheck disable=SC2046 # a word for each log
    tenon-conform trend --html $(ls -v "$BEFORE"/*.jsonl) "$log" >conformance/trend.html
fi
exit $status
