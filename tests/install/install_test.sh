#!/usr/bin/env bash
# Installs Tenon into an empty folder and uses it as a stranger would: a program and a plugin built
# outside of the tree by pkg-config.  usage: install_test.sh SOURCE-ROOT BUILD-ROOT PREFIX
set -euo pipefail
# shellcheck source=tests/install/installed.sh
source "$(dirname "$0")/installed.sh"
cc=${CC:-cc}

for header in "$source_root"/{plugin-sdk,base,dispatcher,core,nn}/include/tenon/{,ext/}*.{h,hpp}; do
    [[ -f $installed/include/${header#*/include/} || ! -f $header ]] ||
        fail "<${header#*/include/}> is not installed"
done
ok "every public header is installed"

# The build tree's plugins must not help: an installed library looks beside itself.
"$installed/bin/tenon" plugins >"$work/plugins"
expect "$library/tenon/plugins" "$work/plugins"
! grep -qF "$build_root" "$work/plugins" || fail "the installed library searches the build tree"
ok "plugins are searched beside the installed library"

# ---- a program -----------------------------------------------------------------------------------

cp "$source_root/samples/hello/hello.c" "$work/hello.c"
# shellcheck disable=SC2046 # words are wanted
$cc -std=c11 -Wall -Wextra -Werror -o "$work/hello" "$work/hello.c" $(pkg-config --cflags --libs tenon)
TENON_DEVICE=cpu:0 "$work/hello" >"$work/hello.out"
expect "device cpu:0" "$work/hello.out"
expect "sum of squares 91" "$work/hello.out"
ok "a program of its own runs on cpu:0"

if TENON_DEVICE=npu:0 "$work/hello" >"$work/npu.out" 2>&1; then
    fail "a device that is not there was accepted"
fi
expect "npu" "$work/npu.out"
expect "TENON_PLUGIN_PATH" "$work/npu.out"
ok "a device that is not there is refused, with what to do"

printf '#include <tenon/data.h>\n#include <tenon/nn.h>\n#include <tenon/tenon.h>\nint main(void) {\n    tn_nn_linear m;\n%s\n}\n' \
    '    return tn_nn_linear_init(&m, &(tn_nn_linear_options){2, 3, false}, tn_no_device(), TN_F32);' >"$work/nn.c"
# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Werror -o "$work/nn" "$work/nn.c" $(pkg-config --cflags --libs tenon-nn)
"$work/nn"
ok "a program with libtenon-nn runs"

if command -v g++ >/dev/null; then
    printf '#include <tenon/tenon.h>\nint main() { TN_SCOPE; return tn_relu(tn_zeros(TN_SHAPE(2))) ? 0 : 1; }\n' \
        >"$work/hello.cpp"
    # shellcheck disable=SC2046
    g++ -std=c++17 -Wall -Wextra -Werror -o "$work/hello_cpp" "$work/hello.cpp" \
        $(pkg-config --cflags --libs tenon)
    "$work/hello_cpp"
    ok "a C++ program compiles and runs"
fi

# ---- a plugin ------------------------------------------------------------------------------------

mkdir "$work/vendor"
# shellcheck disable=SC2046
$cc -std=c11 -Wall -Wextra -Wno-unused-parameter -Werror -shared -fPIC -fvisibility=hidden \
    -Wl,-z,defs -o "$work/vendor/libtenon_toy.so" "$source_root/tests/install/toy.c" \
    $(pkg-config --cflags --libs tenon-plugin)
python3 "$source_root/tools/check_exports.py" plugin "$work/vendor/libtenon_toy.so"
TENON_PLUGIN_PATH=$work/vendor "$installed/bin/tenon" devices >"$work/devices"
expect "toy:0" "$work/devices"
expect "cpu:0" "$work/devices"
ok "a plugin built with tenon-plugin brings its device"

if TENON_PLUGIN_PATH=$work/vendor TENON_DEVICE=toy:0 "$work/hello" >"$work/toy.out" 2>&1; then
    fail "a device without kernels computed something"
fi
expect "toy:0" "$work/toy.out"
expect "TENON_FALLBACK" "$work/toy.out"
ok "a missing kernel is refused, with what would help"

TENON_FALLBACK=cpu TENON_PLUGIN_PATH=$work/vendor TENON_DEVICE=toy:0 "$work/hello" >"$work/toy.out"
expect "sum of squares 91" "$work/toy.out"
ok "with TENON_FALLBACK=cpu the program runs on it all the same"

echo "$n_checks passed, 0 failed"
