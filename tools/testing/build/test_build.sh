#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What fetching a base kernel and staging the modules do when something is wrong:
# one line that says what, and nothing left behind.  Prints TAP.
#
#   tools/testing/build/test_build.sh [--line LINE]

set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
# shellcheck source=tools/testing/build/tap.sh
. "$here/tap.sh"
line=()
[ "${1:-}" != --line ] || line=(--line "${2:?}")
unset KDIR KSRC MIRROR MIRROR_SECURITY
ids=$("$top/scripts/base-kernel" "${line[@]}") || exit 1
eval "$ids"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
says() { grep -qF -- "$1" log; ok $? "  and says '$1'"; }
# An apt that tells when it is called.
mkdir bin
for tool in apt-get apt-cache; do
	printf '#!/bin/sh\ntouch "%s/apt-called"\nexit 1\n' "$work" > bin/$tool
	chmod +x bin/$tool
done

# 1. Fetching.
RDMA_DMABUF_CACHE=$work/cache MIRROR=http://127.0.0.1:9/debian \
	timeout 120 "$top/scripts/base-kernel" --line "$LINE" > out 2> log
is $? 1 'a mirror that is not there'
diag < log
is "$(grep -vc 'reading the package lists' log)" 1 '  one line about it'
for word in 127.0.0.1 MIRROR=; do says "$word"; done
suite=$(awk -v l="$LINE" '$1 == l { split($2, s, ","); print s[1] }' "$top/scripts/lines")
says "$suite"
is "$(cat out)" '' '  and no kernel is printed'
"$top/scripts/base-kernel" --line 0.1 > out 2> log
is $? 1 'a line that is not there'
says '0.1'

PATH=$work/bin:$PATH RDMA_DMABUF_CACHE=$work/none KDIR=$KDIR KSRC=$KSRC \
	"$top/scripts/base-kernel" --line "$LINE" > out 2> log
ok $? 'KDIR and KSRC together'
diag < log
is "$(grep -cxF -e "ABI=$ABI" -e "KDIR=$KDIR" -e "KSRC=$KSRC" out)" 3 '  are what is printed'
[ ! -e apt-called ] && [ ! -e none ]
ok $? '  apt is not called, and the cache not made'
mkdir old
printf 'VERSION = 5\nPATCHLEVEL = 9\nSUBLEVEL = 1\n' > old/Makefile
KDIR=$KDIR KSRC=$work/old "$top/scripts/base-kernel" --line "$LINE" > out 2> log
is $? 1 'KDIR and KSRC of two versions'
says "$KDIR is version ${VERSION%-*}"
says "$work/old is version 5.9.1"
KDIR=$work KSRC=$KSRC "$top/scripts/base-kernel" --line "$LINE" > out 2> log
is $? 1 'a KDIR that is no kernel'
says "KDIR=$work"
KDIR=$KDIR "$top/scripts/build-modules" --line "$LINE" --flavour debug > out 2> log
is $? 1 'KDIR for the debug kernel'
says 'FLAVOUR=debug'

# 2. Staging, in a copy of the tree whose first hook does not apply any more.
mkdir tree
cp -r "$top/scripts" "$top/patches" "$top/drivers" "$top/include" tree/
hook=$(sed -n '/^[^#[:space:]]/{p;q}' "tree/patches/$LINE/series")
sed -i 's/^ \(.\)/ X\1/' "tree/patches/$LINE/$hook"
mkdir -p out.d/stage out.d/modules
touch out.d/stage/there out.d/modules/there.ko
KDIR=$KDIR KSRC=$KSRC tree/scripts/build-modules --line "$LINE" --out "$work/out.d" > out 2> log
is $? 1 'a hook that does not apply'
says "$hook does not apply"
[ -e out.d/stage/there ] && [ -e out.d/modules/there.ko ]
ok $? '  what was built before is still there'
is "$(ls out.d)" "$(printf 'lock\nmodules\nstage')" '  and nothing else'
mkdir 'a folder'
KDIR=$KDIR KSRC=$KSRC tree/scripts/build-modules --line "$LINE" --out "$work/a folder" > out 2> log
is $? 1 'a folder with a space, which kbuild cannot do'
says 'a space or a colon'

# 3. Lines.  One without a series has what takes no hook, and no more.
[ "$(awk '/^[0-9]/ { print $1; exit }' "$top/scripts/lines")" = 5.10 ]
ok $? '5.10 leads'
rm -r "tree/patches/$LINE"
KDIR=$KDIR KSRC=$KSRC tree/scripts/build-modules --line "$LINE" --out "$work/bare" > out 2> log
is $? 0 'modules of a line without a series'
is "$(ls bare/modules)" vramsim.ko '  are vramsim'
diag < log
is "$(cat bare/installable)" vramsim '  which can be installed'
# In a kernel tree of the oldest line nothing defines them.
[ "$LINE" != 5.10 ] || is "$(grep -c HAVE_ bare/stage/dmabuf-config.h)" 0 \
	'  and the oldest line has none of scripts/probes'
cp -r "$top/tools" tree/
for command in 'scripts/make-series --out none' scripts/check-style \
	tools/rdma-dmabuf/bench-guest 'tools/rdma-core/run-tests --dmabuf'; do
	# shellcheck disable=SC2086 # its options
	! tree/$command --line "$LINE" > out 2> log && [ ! -s out ] && [ "$(wc -l < log)" = 1 ]
	ok $? "$command is refused"
	says "no series for line '$LINE'"
	diag < log
done

# 4. Installing what is needed.
"$top/scripts/setup" --list > log
ok $? 'setup lists what is missing'
diag < log
if [ ! -s log ]; then
	PATH=$work/bin:$PATH "$top/scripts/setup" > out 2>&1
	ok $? '  and leaves apt alone when nothing is'
	[ ! -e apt-called ]
	ok $? '  (apt was not called)'
else
	skip '  and leaves apt alone when nothing is' 'something is missing here'
fi
tap_done
