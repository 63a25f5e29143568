#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Is the generated series fit to be sent?  It is made, compared, applied to both
# forms of the base kernel, checked by checkpatch, and every step is compiled.
# Runs on the building machine; prints TAP.
#
#   tools/testing/build/test_series.sh [--line LINE]
#
# Compiling is incremental, in the cache.  A state of the tree that
# was compiled before, byte for byte, with the same compiler and configuration, is
# not compiled again; its messages are kept there and judged again.

set -u
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)
# shellcheck source=tools/testing/build/tap.sh
. "$here/tap.sh"
[ "${1:-}" != --line ] || line=(--line "${2:?}")
ids=$("$top/scripts/base-kernel" "${line[@]}") || exit 1
eval "$ids"
unset MAKEFLAGS MFLAGS MAKELEVEL
# Before HOME changes
export RDMA_DMABUF_CACHE=${RDMA_DMABUF_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/rdma-dmabuf}

keep=$RDMA_DMABUF_CACHE/series-check/$LINE
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$keep/messages"
exec 9> "$keep/lock"
flock 9
cd "$work" || exit 1

# Nobody's git configuration but this.
export GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null HOME=$work
unset EMAIL
nobody() { "$top/scripts/make-series" --line "$LINE" "$@"; }
somebody() {
	GIT_AUTHOR_NAME='A. U. Thor' GIT_AUTHOR_EMAIL=author@example.org \
	GIT_AUTHOR_DATE='1700000000 +0100' RDMA_DMABUF_CACHE=/nonexistent nobody "$@"
}

# 1. Making it.
nobody --out "$work/none" > log 2>&1
is $? 1 'refused without a git identity'
is "$(wc -l < log)" 1 '  in one line'
[ ! -e "$work/none" ]
ok $? '  and nothing is written'
somebody --out "$work/series" > log 2>&1
ok $? 'made with an identity from the environment, without a kernel tree'
diag < log
somebody --out "$work/again" > /dev/null
diff -r series again > log
ok $? '  twice the same bytes'
patches=("$work"/series/000[1-9]*.patch "$work"/series/00[1-9][0-9]*.patch)
for i in "${!patches[@]}"; do [ -e "${patches[i]}" ] || unset "patches[i]"; done
patches=("${patches[@]}")
is "$(grep -l '^From: A. U. Thor <author@example.org>$' "${patches[@]}" | wc -l)" ${#patches[@]} '  author in each patch'
is "$(grep -l '^Signed-off-by: A. U. Thor <author@example.org>$' "${patches[@]}" | wc -l)" ${#patches[@]} '  signed off in each patch'
is "$(grep -rl 'rdma-dmabuf@example.org' series | wc -l)" 0 '  no placeholder left'
mkdir copy && cp -r "$top/scripts" "$top/patches" "$top/drivers" "$top/include" "$top/Documentation" "$top/tools" copy/
lost=$(awk '/^\t/ { print $1; exit }' "copy/patches/$LINE/series")
rm "copy/$lost"
(GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@b copy/scripts/make-series --line "$LINE" --out "$work/none") > log 2>&1
is $? 1 'refused when a listed file is missing'
grep -q "$lost" log && [ "$(wc -l < log)" = 1 ] && [ ! -e none ]
ok $? '  it is named, and nothing is written'

# 2. Applying it: to a git tree of the files that it touches, and of those in its way.
mapfile -t paths < <(git apply --numstat "${patches[@]}" | cut -f 3 | sort -u)
files_of_source() {
	local path
	for path in "${paths[@]}"; do
		[ ! -e "$KSRC/$path" ] || (cd "$KSRC" && cp --parents "$path" "$1/")
	done
}
files_of_orig() {
	# Those that are new are not in it, of which tar complains.
	tar -C "$1" -xJf "$ORIG" --strip-components=1 --wildcards "${paths[@]/#/*/}" 2> /dev/null || true
}
apply_to() {
	local name=$1 patch
	mkdir "$name"
	"files_of_$name" "$work/$name"
	git -C "$name" init -q
	git -C "$name" config user.name 'A. U. Thor'
	git -C "$name" config user.email author@example.org
	git -C "$name" add -A
	git -C "$name" commit -q -m 'base'
	for patch in "${patches[@]}"; do
		git -C "$name" am -q --whitespace=error "$patch" > log 2>&1
		ok $? "$name: git am $(basename "$patch")"
		[ -z "$(cat log)" ] || diag < log
	done
}
apply_to source
if [ -n "${ORIG:-}" ]; then
	apply_to orig
else
	skip 'orig: git am' 'no upstream tarball: KDIR= and KSRC= are given, or the mirror has no source packages'
fi

# 3. Style.
for patch in "${patches[@]}"; do
	"$top/scripts/checkpatch" "$patch" > log 2>&1
	ok $? "checkpatch --strict $(basename "$patch")"
	diag < log
done

# 4. Compiling each step.
tree=$keep/tree-$VERSION
if [ ! -e "$tree.done" ]; then
	rm -rf "$tree"
	cp -al "$KSRC" "$tree" 2> /dev/null || { rm -rf "$tree"; cp -a "$KSRC" "$tree"; }
	touch "$tree.done"
fi
dirs=$(printf '%s\n' "${paths[@]}" | sed -n '/^tools\//d; s#^\(.*/\)[^/]*\.c$#\1#p' | sort -u)
ours=$(grep -E '^CONFIG_' "$top/scripts/modules.config"; echo CONFIG_INFINIBAND_UMEM_DMABUF_KUNIT_TEST=m)
# The debug kernel's configuration without its checks, which make compiling slow.
plain=$(sed '/^# Checks/,$d' "$top/tools/testing/vm/debug.config"
	grep -E '^CONFIG_(DEBUG_KERNEL|DEBUG_FS|FTRACE|TRACING|ENABLE_DEFAULT_TRACERS|KUNIT)=' "$top/tools/testing/vm/debug.config")
compiler=$(gcc --version | head -n 1; sparse --version)
case $compiler in *[0-9]*$'\n'*[0-9]*) ;; *) skip 'sparse' 'sparse is not installed (make setup)';; esac

# Make the tree what the scratch tree "source" holds; files that stay keep their time.
put_tree() {
	local path
	for path in "${paths[@]}"; do
		if [ ! -e "source/$path" ]; then
			rm -f "$tree/$path"
		elif ! cmp -s "source/$path" "$tree/$path"; then
			mkdir -p "$(dirname "$tree/$path")"
			rm -f "$tree/$path"	# it may be a link to the base kernel's
			cp "source/$path" "$tree/$path"
		fi
	done
}

# Files of the series that lie in the tree and have not become an object.
not_compiled() {
	local path
	for path in "${paths[@]}"; do
		case $path in
		tools/*) ;;
		*.c) [ ! -e "$tree/$path" ] || [ -e "$1/${path%.c}.o" ] || echo "$path: error: not compiled";;
		esac
	done
}

# compile VARIANT CONFIG: messages, without line numbers, into messages; "failed" among
# them if it did.
compile() {
	local variant=$1 config=$2 obj=$keep/$1 key dir targets=()
	key=$( (git -C source rev-parse 'HEAD^{tree}'; echo "$config $compiler $VERSION $variant"; declare -f compile) | sha256sum | cut -c 1-16)
	if [ ! -e "$keep/messages/$key" ]; then
		put_tree
		for dir in $dirs; do
			[ ! -e "$tree/$dir/Makefile" ] || targets+=("$dir")
		done
		# Only what is compiled brings its messages: all of it for the base, and
		# after a run that was cut short.
		if [ $n = 0 ] || [ -e "$obj/unfinished" ]; then
			rm -rf "$obj"
		fi
		mkdir -p "$obj"
		touch "$obj/unfinished"
		echo "$config" > "$obj/wanted"
		KCONFIG_ALLCONFIG=$obj/wanted make -s -C "$tree" O="$obj" allnoconfig > "$obj/log" 2>&1
		# An untouched .config keeps its time, and with it what was compiled.  Asked
		# for a folder, the kernel leaves its modules out unless told otherwise.
		make -s -C "$tree" O="$obj" KBUILD_MODULES=1 W=1 C=1 -k -j"$(nproc)" "${targets[@]}" > "$obj/log" 2>&1 || echo failed >> "$obj/log"
		case $variant in
		m|y) not_compiled "$obj" >> "$obj/log";;
		esac
		cp "$obj/.config" "$keep/messages/$key.config"
		sed -n -e "s#$tree/##g" -e 's#^\(\.\./\)*##' \
			-e '/^failed$/p' -e '/: \(warning\|error\|note\|fatal error\)/{s/:[0-9]\+//g;p}' \
			-e '/^make.*\*\*\*/{s/:[0-9]\+//g;p}' "$obj/log" | sort -u > "$keep/messages/$key.new"
		mv "$keep/messages/$key.new" "$keep/messages/$key"
		rm "$obj/unfinished"
	fi
	cp "$keep/messages/$key" messages
	cp "$keep/messages/$key.config" config
}
# judge NAME: no message that the base did not have.
judge() {
	comm -13 base messages > log
	[ ! -s log ]
	ok $? "$1: W=1 and sparse bring no new message"
	diag < log
}
# taken NAME CONFIG: Kconfig accepted what was asked for.
taken() {
	grep -vxFf config <<< "$2" > log
	[ ! -s log ]
	ok $? "$1: Kconfig takes all options"
	diag < log
}

# all_off NAME: none of the options is set, but for vramsim, which stands by itself.
all_off() {
	grep -E '^CONFIG_(INFINIBAND_UMEM_DMABUF|RDMA_RXE_DMABUF|MLX5_INFINIBAND_DMABUF)=' config > log
	[ ! -s log ]
	ok $? "$1: the options are off"
	diag < log
}
without() { grep -vE "^CONFIG_($1)="; }

series=$(git -C source rev-list --reverse HEAD)
last=$(tail -n 1 <<< "$series")
n=0
for commit in $series; do
	git -C source checkout -q "$commit"
	compile m "$plain
$ours"
	if [ $n = 0 ]; then
		cp messages base
		! grep -q failed base
		ok $? 'the base compiles'
	else
		judge "$(basename "${patches[n - 1]}")"
	fi
	n=$((n + 1))
done
taken 'as modules' "$ours"
git -C source checkout -q "$last"
built_in() { sed 's/=m$/=y/'; }
compile y "$(built_in <<< "$plain
$ours")"
judge 'built in'
taken 'built in' "$(built_in <<< "$ours")"
compile off "$plain"
judge 'options off'
all_off 'options off'

# What the options need, and what they bring along.
compile no-users "$(without INFINIBAND_USER_ACCESS <<< "$plain
$ours")"
judge 'without verbs for users'
all_off 'without verbs for users'
rdma_only=$(without 'INFINIBAND_ON_DEMAND_PAGING|DMABUF_.*|UDMABUF|DRM.*' <<< "$plain
$ours")
compile rdma-only "$rdma_only"
judge 'without on-demand paging and exporters'
taken 'without on-demand paging and exporters' "$(grep -xFf <(without 'DRM.*' <<< "$ours") <<< "$rdma_only"
	echo CONFIG_DMA_SHARED_BUFFER=y)"
tap_done
