#!/usr/bin/env bash
# The first hour of a vendor: `tenon new-plugin acme npu` of an installed Tenon, in an empty folder, in C
# and in C++; its project builds with Meson and with CMake, loads, works, and is installed.
# usage: new_plugin_test.sh SOURCE-ROOT BUILD-ROOT PREFIX
set -euo pipefail
# shellcheck source=tests/install/installed.sh
source "$(dirname "$0")/installed.sh"
tenon=$installed/bin/tenon

mkdir "$work/vendor"
cd "$work/vendor"

# refused CODE TEXT ARGUMENTS...: the command fails so, says so, and leaves nothing.
refused() {
    local code=0
    "$tenon" new-plugin "${@:3}" >"$work/out" 2>&1 || code=$?
    [[ $code == "$1" ]] || fail "new-plugin ${*:3}: exit code $code, should be $1"
    expect "$2" "$work/out"
    [[ -z $(ls -A) ]] || fail "new-plugin ${*:3} left $(ls -A)"
}

# ---- what is refused -----------------------------------------------------------------------------

refused 2 "VENDOR and TYPE are needed" acme
refused 2 "VENDOR is 'Acme'" Acme npu
refused 2 "TYPE is 'n-pu'" acme n-pu
refused 2 "TYPE is '2npu'" acme 2npu
refused 2 "TYPE is ''" acme ""
refused 2 "at most 31" acme abcdefghijklmnopqrstuvwxyz_123456
refused 2 "'meta' is Tenon's own" acme meta
refused 2 "a folder's name must follow" acme npu --dir
refused 2 "one word too many" acme npu tpu
refused 2 "there is no template in 'rust'; --lang takes c or c++" acme npu --lang rust
refused 2 "c or c++ must follow" acme npu --lang
refused 1 "cannot make the folder 'no/such'" acme npu --dir no/such
refused 1 "Not a directory" acme npu --dir /dev/null
ok "bad names and folders are refused, with the reason"

mkdir "$work/taken"
touch "$work/taken/file"
refused 1 "is not empty" acme npu --dir "$work/taken"
[[ $(ls -A "$work/taken") == file ]] || fail "a folder that was refused has changed"
ok "a folder that is not empty is left alone"

# A file may be at most 1 KiB long: some are written, then one fails.
(
    trap '' XFSZ
    ulimit -f 1
    "$tenon" new-plugin acme npu >"$work/vendor/out" 2>&1
) && fail "a project was written without space for it"
rm "$work/vendor/out"
[[ -z $(ls -A) ]] || fail "half a project was left: $(ls -A)"
mkdir empty
(
    trap '' XFSZ
    ulimit -f 1
    "$tenon" new-plugin acme npu --dir empty 2>/dev/null
) && fail "a project was written without space for it"
[[ -z $(ls -A empty) ]] || fail "half a project was left in a folder: $(ls -A empty)"
rmdir empty
ok "when writing fails nothing is left"

# One that cannot be read, among those that are copied last.
mkdir "$installed/share/tenon/template/c/zzz"
refused 1 "cannot read zzz of the template: Is a directory" acme npu
rmdir "$installed/share/tenon/template/c/zzz"
ok "when copying fails nothing is left"

mkdir -p "$work/alone/bin"
cp "$tenon" "$work/alone/bin"
if "$work/alone/bin/tenon" new-plugin acme npu >"$work/out" 2>&1; then
    fail "a project was written without a template"
fi
expect "the template is not in $work/alone/bin/../share/tenon/template" "$work/out"
ok "without the template it says where it looked"

# ---- the project ---------------------------------------------------------------------------------

# use_it BUILD SUFFIX: the plugin in BUILD loads, and its device works.
use_it() {
    python3 "$source_root/tools/check_exports.py" plugin "$1/libtenon_npu.so"
    TENON_PLUGIN_PATH=$1 TENON_LOG=plugin=info "$tenon" devices >"$work/devices" 2>"$work/log"
    expect "npu:0" "$work/devices"
    expect "acme npu" "$work/devices"
    expect "com.acme.npu" "$work/devices"
    expect "tn_device_ops.accepts is not written yet: in kernels.$2" "$work/log"
    expect "(TNP-36)" "$work/log"
    TENON_PLUGIN_PATH=$1 "$1/smoke" >"$work/smoke"
    expect "bytes go there and come back" "$work/smoke"
    tenon-conform run "$1/libtenon_npu.so" --level load --quiet >"$work/conform" ||
        fail "tenon-conform: $(cat "$work/conform")"
    expect "levels passed: Load" "$work/conform"
}

# project LANG SUFFIX: it is written, builds in both ways, and works.
project() {
    "$tenon" new-plugin acme npu --lang "$1" --dir "$work/vendor/$2" >"$work/out"
    expect "cd $work/vendor/$2" "$work/out"
    cd "$work/vendor/$2"
    ! grep -rnE '[Yy]our(vendor|type|c|languages)|YOUR' . || fail "made-up names of the template are left"
    [[ -f .gitignore && -f kernels.$2 && ! -e conformance.sh ]] || fail "$1: there is $(ls -A)"
    expect "kernels.$2" README.md

    meson setup build -Dwerror=true >"$work/setup" || fail "meson setup: $(cat "$work/setup")"
    ! grep -i warning "$work/setup" || fail "meson has something to say"
    meson compile -C build >"$work/compile" || fail "meson compile: $(cat "$work/compile")"
    use_it "$PWD/build" "$2"
    meson test -C build >"$work/test" || fail "meson test: $(cat "$work/test")"
    expect "conformance" "$work/test"
    ok "$1, built with Meson: the device is listed, works, and passes level Load"

    if command -v cmake >/dev/null; then
        cmake -B build-cmake -DCMAKE_C_FLAGS=-Werror -DCMAKE_CXX_FLAGS=-Werror >"$work/setup" 2>&1 ||
            fail "cmake: $(cat "$work/setup")"
        cmake --build build-cmake >"$work/compile" || fail "cmake --build: $(cat "$work/compile")"
        use_it "$PWD/build-cmake" "$2"
        (cd build-cmake && ctest) >"$work/test" || fail "ctest: $(cat "$work/test")"
        expect "conformance" "$work/test"
        ok "$1, built with CMake: the device is listed, works, and passes level Load"
    else
        echo "skipped: the build with CMake, which is not here"
    fi
}

if command -v "${CXX:-c++}" >/dev/null; then
    project c++ cpp
else
    echo "skipped: the project in C++, for which there is no compiler"
fi
project c c

"$tenon" new-plugin acme npu --wheel --dir "$work/vendor/wheel" >"$work/out"
(cd "$work/vendor/wheel" && python3 plugin_wheel.py "$work/wheels") >"$work/out"
[[ -f $(tail -n 1 "$work/out") && $(ls "$work/wheels") == tenon_npu-0.1.0-py3-none-linux_*.whl ]] || fail "no wheel: $(cat "$work/out")"
ok "it makes a wheel of itself"

mkdir "$work/vendor/here"
(cd "$work/vendor/here" && "$tenon" new-plugin acme npu --dir .) >"$work/out"
expect "meson setup build" "$work/out"
! grep "  cd " "$work/out" || fail "who is in the folder is sent there"
[[ -f $work/vendor/here/kernels.c ]] || fail "--dir .: there is $(ls -A "$work/vendor/here")"
ok "--dir . takes an empty folder that one is in"

# What a CI calls: as one machine, and as two that build in folders of their own.
"$tenon" new-plugin acme npu --ci --dir "$work/vendor/ci" >"$work/out"
cp -r "$work/vendor/ci" "$work/vendor/ci2"
(
    cd "$work/vendor/ci"
    mkdir "$work/releases" "$work/none"
    BEFORE=$work/none ./conformance.sh >"$work/ci.out" 2>&1 || fail "conformance.sh: $(cat "$work/ci.out")"
    [[ ! -e conformance/trend.html ]] || fail "trend.html is of one log"
    cp conformance/run.jsonl "$work/releases/0.1.0.jsonl"
    BEFORE=$work/releases ./conformance.sh >"$work/ci.out" 2>&1 || fail "conformance.sh: $(cat "$work/ci.out")"
    for report in run.xml run.html run.md trend.html; do
        [[ -s conformance/$report ]] || fail "conformance.sh made no $report: $(cat "$work/ci.out")"
    done
    LEVEL=core OPTIONS='--filter kernel/add' ./conformance.sh >"$work/ci.out" 2>&1 && fail "a level that does not hold is no failure"
    LEVEL=cor ./conformance.sh >"$work/ci.out" 2>&1 && fail "a level that is not there is no failure"
    [[ -s conformance/run.jsonl ]] || fail "the log of before is gone"
    ./conformance.sh mrege >"$work/ci.out" 2>&1 && fail "a misspelt word is no failure"
    expect "usage: ./conformance.sh [merge]" "$work/ci.out"
    SHARD=1/2 ./conformance.sh >"$work/ci.out" 2>&1 || fail "shard 1: $(cat "$work/ci.out")"
    ./conformance.sh merge >"$work/ci.out" 2>&1 && fail "half of the cases show a level"
    SHARD=2/2 ../ci2/conformance.sh >"$work/ci.out" 2>&1 || fail "shard 2: $(cat "$work/ci.out")"
    mv ../ci2/conformance/run-2.jsonl conformance
    ./conformance.sh merge >"$work/ci.out" 2>&1 || fail "the shards: $(cat "$work/ci.out")"
    expect " passed, 0 failed" "$work/ci.out"
    expect "| Load | passed |" conformance/run.md
    for job in .gitlab-ci.yml github-actions.yml Jenkinsfile; do
        expect "./conformance.sh" "$job"
    done
)
ok "what a CI calls tells levels, alone and of shards"

# shellcheck disable=SC2046 # words are wanted
"${CC:-cc}" -o "$work/hello" "$source_root/samples/hello/hello.c" $(pkg-config --cflags --libs tenon)
TENON_PLUGIN_PATH=$PWD/build TENON_DEVICE=npu:0 TENON_FALLBACK=cpu "$work/hello" >"$work/hello.out"
expect "sum of squares 91" "$work/hello.out"
ok "a program runs on it, with the CPU for what is to be written"

# Tenon itself was installed below $work/root; some versions of pkg-config say so in variables.
[[ $(pkg-config --variable=plugindir tenon-plugin) == "$work"/* ]] || export DESTDIR=$work/root
meson install -C build --quiet >"$work/install" || fail "meson install: $(cat "$work/install")"
"$tenon" devices >"$work/devices"
expect "npu:0" "$work/devices"
"$tenon" plugins >"$work/plugins"
expect "$library/tenon/plugins/libtenon_npu.so" "$work/plugins"
TENON_DEVICE=npu@com.acme.npu:0 "$tenon" devices >"$work/devices"
grep -q '^\*  npu' "$work/devices" || fail "the plugin cannot be picked by its id: $(cat "$work/devices")"
ok "installed, it is found without being named, and picked by its id"

[[ -f $installed/share/doc/tenon/docs/vendor/requirements.md ]] || fail "the vendor's pages are not installed"
ok "the pages that the project names are there"

echo "$n_checks passed, 0 failed"
