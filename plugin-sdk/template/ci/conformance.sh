#!/bin/sh
# What a CI job calls, and anyone by hand: builds the plugin and runs the conformance suite on it.
#
#     ./conformance.sh             runs the cases that LEVEL asks for
#     ./conformance.sh merge       judges the logs of all shards, conformance/run-*.jsonl, as one run
#
# It fails where the level does not hold. By the environment:
#
#     LEVEL=load         what is to hold; raise it as the plugin grows: memory, core, full, train, perf
#     SHARD=1/4          on the first of four machines: every fourth of the cases, to be merged
#     DEVICES=0,1        those to use, or all; 0 as a rule
#     OPTIONS='...'      more of `tenon-conform run`, such as '-j4' or '--lists known.txt'
#     BEFORE=FOLDER      logs of earlier releases, VERSION.jsonl (a conformance/run.jsonl that was kept):
#                        trend.html shows them beside this one
#
# In conformance/ are then the log, run.xml (JUnit), run.html, run.md and trend.html.
set -eu
cd "$(dirname "$0")"
level=${LEVEL:-load}
reports='--junit conformance/run.xml --html conformance/run.html --markdown conformance/run.md --without-unsupported'
status=0
mkdir -p conformance
rm -f conformance/run.xml conformance/run.html conformance/run.md conformance/trend.html

case "${1:-}" in
'') ;;
merge)
    # shellcheck disable=SC2086 # words are wanted
    tenon-conform report conformance/run-*.jsonl --level "$level" $reports || status=$?
    [ ! -f conformance/run.md ] || grep -m 1 ' passed, ' conformance/run.md
    exit $status
    ;;
*)
    echo "usage: ./conformance.sh [merge]; what it takes by the environment stands at its head" >&2
    exit 2
    ;;
esac

[ -d build ] || meson setup build
meson compile -C build
log=conformance/run.jsonl
if [ -n "${SHARD:-}" ]; then
    log=conformance/run-${SHARD%/*}.jsonl
    set -- --shard "$SHARD"
fi
rm -f "$log.new"
# shellcheck disable=SC2086 # words are wanted
tenon-conform run build/libtenon_yourtype.so --level "$level" --device "${DEVICES:-0}" --log "$log.new" "$@" $reports ${OPTIONS:-} ||
    status=$?
[ ! -f "$log.new" ] || mv "$log.new" "$log"

# `ls -v` puts 1.9 before 1.10.
if [ -n "${BEFORE:-}" ] && ls "$BEFORE"/*.jsonl >/dev/null 2>&1; then
    # shellcheck disable=SC2046 # a word for each log
    tenon-conform trend --html $(ls -v "$BEFORE"/*.jsonl) "$log" >conformance/trend.html ||
        echo "conformance.sh: no trend.html" >&2
fi
exit $status
