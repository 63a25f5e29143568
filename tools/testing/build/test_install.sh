#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Are the modules installed where they are found, and are they refused where they
# do not fit?  Below a scratch root that holds the modules of the stock kernel;
# the machine's own are not touched.  Prints TAP.
#
#   tools/testing/build/test_install.sh [--line LINE]	after make modules

set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
# shellcheck source=tools/testing/build/tap.sh
. "$here/tap.sh"
line=()
[ "${1:-}" != --line ] || line=(--line "${2:?}")
ids=$("$top/scripts/base-kernel" "${line[@]}") || exit 1
eval "$ids"
mapfile -t modules < "$top/build/$LINE/stock/installable" || exit 1
unset KVER

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
# fresh ROOT: a root with the stock kernel's modules.  depmod replaces its files, so
# that links do.
fresh() {
	mkdir -p "$1/lib/modules"
	cp -al "$KROOT/lib/modules/$ABI" "$1/lib/modules/" 2> /dev/null ||
		cp -a "$KROOT/lib/modules/$ABI" "$1/lib/modules/"
	depmod -b "$1" "$ABI"
}
install_to() { DESTDIR=$1 "$top/scripts/install-modules" --line "$LINE" "${@:2}" > log 2>&1; }
found() { modinfo -b "$work/root" -k "$ABI" -n "$1"; }
says() { grep -qF -- "$1" log; ok $? "  and says '$1'"; }
one_line() { is "$(wc -l < log)" 1 '  in one line'; }

fresh root
cp "root/lib/modules/$ABI/modules.dep" dep
stock=$(found rdma_rxe)
folder=$work/root/lib/modules/$ABI/updates/rdma-dmabuf
install_to "$work/root"
ok $? 'installed'
diag < log
says "rdma_rxe, which stands in for ${stock#"$work/root/lib/modules/$ABI/"}"
for module in "${modules[@]}"; do
	is "$(found "$module")" "$folder/$module.ko" "  modprobe finds $module there"
done
is "$(cd "$folder" && echo *.ko)" "$(printf '%s.ko\n' "${modules[@]}" | sort | tr '\n' ' ' | sed 's/ $//')" '  and nothing else is there'
modprobe -d "$work/root" -S "$ABI" --show-depends rdma_rxe | grep -q '/updates/rdma-dmabuf/ib_umem_dmabuf.ko'
ok $? '  rdma_rxe brings ib_umem_dmabuf along'
install_to "$work/root"
ok $? 'installed once more'
install_to "$work/root" --remove
ok $? 'removed'
says 'serves again'
is "$(found rdma_rxe)" "$stock" '  modprobe finds the stock module'
[ ! -e "root/lib/modules/$ABI/updates" ] && cmp -s dep "root/lib/modules/$ABI/modules.dep"
ok $? '  everything is as it was'
install_to "$work/root" --remove
ok $? 'removed once more'
says "not installed for $ABI"

# Where they do not fit.
fresh other
mv "other/lib/modules/$ABI" "other/lib/modules/${ABI%%-*}-99-amd64"
KVER=${ABI%%-*}-99-amd64 install_to "$work/other"
is $? 1 'refused for another kernel'
one_line
says "$ABI"
says "${ABI%%-*}-99-amd64"
[ ! -e "other/lib/modules/${ABI%%-*}-99-amd64/updates" ]
ok $? '  and nothing is installed'

# An ib_core as another vendor's bundle would bring: same release, one symbol changed.
core=root/lib/modules/$ABI/updates/ib_core.ko
mkdir -p "$(dirname "$core")"
symbol=$(modprobe --dump-modversions "$top/build/$LINE/stock/modules/rdma_rxe.ko" | sort -k 2 |
	join -1 2 -2 2 - <(modprobe --show-exports "$(found ib_core)" | sort -k 2) | head -n 1)
crc=$(cut -d ' ' -f 2 <<< "$symbol")
perl -0777 -pe 'BEGIN { $old = pack("V", hex(shift)); $new = ~$old } s/\Q$old\E/$new/g' \
	"$crc" "$(found ib_core)" > ib_core.ko
mv ib_core.ko "$core"
depmod -b root "$ABI"
install_to "$work/root"
is $? 1 'refused with a replaced ib_core'
diag < log
one_line
says "${symbol%% *}"
says 'updates/ib_core.ko'
says "$VERSION"
[ ! -e "$folder" ]
ok $? '  and nothing is installed'

mkdir empty
install_to "$work/empty"
ok $? 'installed below a root without a kernel, for a package'
is "$(find empty -type f | wc -l)" ${#modules[@]} '  nothing but the modules'
install_to "$work/empty" --flavour nosuch
is $? 1 'refused when nothing was built'
one_line
tap_done
