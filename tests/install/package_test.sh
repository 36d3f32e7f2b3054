#!/usr/bin/env bash
# What is installed to read and to build upon stands alone: pages whose links lead somewhere, man pages that
# tell of every command and option, samples and the simulated device that build against the installed Tenon.
# usage: package_test.sh SOURCE-ROOT BUILD-ROOT PREFIX
set -euo pipefail
# shellcheck source=tests/install/installed.sh
source "$(dirname "$0")/installed.sh"
doc=$installed/share/doc/tenon

for file in README.md LICENSE CHANGELOG.md docs/getting-started.md docs/c-api.md docs/vendor/compatibility.md \
    docs/conformance.md docs/validation.md samples/hello/hello.c plugins/sim/plugin.c; do
    [[ -s $doc/$file ]] || fail "share/doc/tenon/$file is not installed"
done
for page in "$source_root"/docs/*.md "$source_root"/docs/*/*.md; do
    [[ -s $doc/${page#"$source_root"/} ]] || fail "share/doc/tenon/${page#"$source_root"/} is not installed"
done
cmp "$source_root/LICENSE" "$doc/LICENSE"
ok "all pages, the licence and the changelog are installed"

python3 "$source_root/tests/install/installed_links.py" "$doc" "$installed/include/tenon" >"$work/links" ||
    fail "$(cat "$work/links")"
! grep -rnE "$source_root|$build_root" "$doc" "$installed/share/man" || fail "what is installed names the build tree"
ok "$(cat "$work/links")"

# ---- man pages -----------------------------------------------------------------------------------

for program in tenon tenon-conform; do
    page=$installed/share/man/man1/$program.1
    [[ -s $page || -s $page.gz ]] || fail "$program has no man page"
    if ! command -v man >/dev/null; then
        echo "skipped: the man page of $program is not shown: there is no man"
        continue
    fi
    MANWIDTH=200 LC_ALL=C.UTF-8 man --warnings -l "$page" 2>"$work/warnings" | sed 's/.\x08//g' >"$work/shown"
    [[ ! -s $work/warnings ]] || fail "man -l $page: $(cat "$work/warnings")"
    verbs=$(COLUMNS=200 $program --help | sed -nE 's/^ {2,4}([a-z][a-z-]+) .*/\1/p')
    [[ $(wc -l <<<"$verbs") -ge 6 ]] || fail "$program --help names no commands"
    for verb in $verbs; do
        expect "$program $verb" "$work/shown"
        $program "$verb" --help >"$work/help"
        for option in $(grep -oE -- '(^|[[:space:]])--?[a-zA-Z?][a-z-]*' "$work/help" | grep -vE -- '--usage|-\?|--help'); do
            sed -n "/^   $program $verb/,/^   $program /p" "$work/shown" | grep -qF -- "$option" ||
                fail "the man page of $program has no $option of $verb"
        done
    done
done
expect "TENON_VALIDATE" "$work/shown"
ok "man pages have every command and option of --help"

# ---- sources -------------------------------------------------------------------------------------

export DESTDIR=
# build WHAT: the installed sources of it, from where they lie, in a folder of its own.
build() {
    meson setup "$work/$1" "$doc/$1" >"$work/out" 2>&1 || fail "$1: meson setup: $(cat "$work/out")"
    meson compile -C "$work/$1" >"$work/out" 2>&1 || fail "$1: meson compile: $(cat "$work/out")"
    ! grep -i 'warning:' "$work/out" || fail "$1: the compiler warns"
}
build samples
"$work/samples/hello/hello" >"$work/hello.out"
expect "sum of squares 91" "$work/hello.out"
"$work/samples/custom_op/custom_op" >"$work/custom.out" || fail "custom_op: $(cat "$work/custom.out")"
TENON_CPU_THREADS=1 "$work/samples/mnist/mnist" --quick --epochs 1 --data "$doc/samples/mnist/data" --out "$work/mnist.svg" >"$work/mnist.out" ||
    fail "mnist: $(cat "$work/mnist.out")"
"$work/samples/gpt/gpt" --quick --steps 4 --text "$doc/docs" --out "$work/gpt.svg" >"$work/gpt.out" 2>&1 ||
    fail "gpt: $(cat "$work/gpt.out")"
"$work/samples/resnet/resnet" --quick --steps 4 --data "$doc/samples/mnist/data" --out "$work/resnet.svg" >"$work/resnet.out" 2>&1 ||
    fail "resnet: $(cat "$work/resnet.out")"
ok "the samples build where they are installed, and run"

build plugins
python3 "$source_root/tools/check_exports.py" plugin "$work/plugins/sim/libtenon_sim.so"
TENON_PLUGINS=$work/plugins/sim/libtenon_sim.so:$library/tenon/plugins/libtenon_cpu.so tenon devices >"$work/devices"
expect "sim:0" "$work/devices"
tenon-conform run "$work/plugins/sim/libtenon_sim.so" --level load --quiet >"$work/conform" ||
    fail "tenon-conform: $(cat "$work/conform")"
ok "the simulated device builds where it is installed, and passes level Load"

echo "$n_checks passed, 0 failed"
