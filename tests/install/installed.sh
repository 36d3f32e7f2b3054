#!/usr/bin/env bash
# Sourced by the tests of what is installed: installs Tenon into an empty folder, $installed, and
# sets the environment up so that pkg-config and the linker find it there.
# usage: TEST SOURCE-ROOT BUILD-ROOT PREFIX
# shellcheck disable=SC2034 # used by who sources this
source_root=$1 build_root=$2 prefix=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TENON_DEVICE TENON_PLUGINS TENON_PLUGIN_PATH TENON_PLUGINS_DISABLE TENON_LOG DESTDIR

n_checks=0
ok() {
    n_checks=$((n_checks + 1))
    echo "ok: $*"
}
fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# expect TEXT FILE: the file holds the text.
expect() {
    grep -qF -- "$1" "$2" || {
        echo "--- $2" >&2
        cat "$2" >&2
        fail "'$1' is not in it"
    }
}

meson install -C "$build_root" --no-rebuild --quiet --destdir "$work/root"
installed=$work/root$prefix
library=$(dirname "$(find "$installed" -name 'libtenon.so' | head -n 1)")
export PKG_CONFIG_PATH=$library/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root
export LD_LIBRARY_PATH=$library
export PATH=$installed/bin:$PATH
pkg-config --exists tenon tenon-plugin || fail "pkg-config does not find tenon and tenon-plugin"
ok "installed, and found by pkg-config"
test -s "$installed/share/tenon/kernels.json" || fail "share/tenon/kernels.json is not installed"
env -u LD_LIBRARY_PATH tenon env >/dev/null || fail "tenon does not find libtenon where it was installed with it"
core=$(find "$installed" -name tenon-conform-core)
env -u LD_LIBRARY_PATH "$core" list --set smoke >/dev/null || fail "tenon-conform-core does not find libtenon"
ok "programs find the library beside them"
