#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The command rdma-dmabuf: options in any order, exit codes, and messages that
# name the call and the errno (cases K15 and K18).

tool=$(dirname "$0")/../tools/rdma-dmabuf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
number=0
failed=0

# run STATUS TEXT NAME ARGUMENT...: the status, and TEXT (a pattern) in the output
run() {
	local status=$1 text=$2 name=$3 rc=0
	shift 3
	"$tool" "$@" > "$work/output" 2>&1 || rc=$?
	number=$((number + 1))
	if [ $rc = "$status" ] && grep -q -- "$text" "$work/output"; then
		echo "ok $number - $name"
	else
		sed 's/^/# /' "$work/output"
		echo "# status $rc, wanted $status and '$text'"
		echo "not ok $number - $name"
		failed=1
	fi
}

echo "TAP version 13"
if [ ! -x "$tool" ]; then
	echo "1..0 # SKIP $tool is not built"
	exit 4
fi
if [ ! -e /sys/class/infiniband/rxe0 ]; then
	echo "1..0 # SKIP no rxe0"
	exit 4
fi

d=(-d rxe0) x=(--gid-index 1) e=(-e vramsim)
run 0 'path: dmabuf' 'demo, options in the order d x e' demo "${d[@]}" "${x[@]}" "${e[@]}"
run 0 'path: dmabuf' 'demo, options in the order d e x' demo "${d[@]}" "${e[@]}" "${x[@]}"
run 0 'path: dmabuf' 'demo, options in the order x d e' demo "${x[@]}" "${d[@]}" "${e[@]}"
run 0 'path: dmabuf' 'demo, options in the order x e d' demo "${x[@]}" "${e[@]}" "${d[@]}"
run 0 'path: dmabuf' 'demo, options in the order e d x' demo "${e[@]}" "${d[@]}" "${x[@]}"
run 0 'path: dmabuf' 'demo, options in the order e x d' demo "${e[@]}" "${x[@]}" "${d[@]}"
run 0 'path: dmabuf' 'demo, -1 is no GID index' demo -x -1 "${e[@]}"
run 0 'path: dmabuf' 'demo, standard input closed' demo "${e[@]}" <&-

run 2 '^usage:' 'no command'
run 2 "no command 'bnech'" 'unknown command' bnech
run 2 '^usage:' 'demo, unknown option' demo --sizes 4K
run 2 '^usage:' 'demo, stray argument' demo rxe0
run 2 "bad value '4X' of -s" 'bench, bad size' bench -s 4X
run 2 "bad value '0' of -r" 'bench, no rounds' bench -r 0
run 0 '^usage:' 'help is no error' bench --help

run 4 'nosuch: .*ENODEV' 'no such RDMA device: skip' demo -d nosuch
run 4 'vramsim:7: .*ENODEV' 'no such GPU: skip' demo -e vramsim:7
run 4 'heap:nosuch: .*ENODEV' 'no such heap: skip' bench -e heap:nosuch
run 1 'nosuch: .*EINVAL' 'unknown exporter: the name is told' demo -e nosuch
run 1 'ibv_query_gid failed: E' 'no such GID: the call is told' demo -x 4000
run 1 'mmap failed: ENOMEM' 'no memory: the call is told' bench -s 4K -r 1 -R 4T
run 1 '/nosuch/file failed: ENOENT' 'no JSON file: it is told' \
	bench -s 4K -n 1 -r 1 -R 0 -j /nosuch/file

run 0 '^path ' 'bench, one size' bench -r 2 -s 64K -n 1 -R 64K --json "$work/json"
number=$((number + 1))
if python3 -c '
import json, sys
results = json.load(open(sys.argv[1]))
assert results["placement"] == "vram" and results["cost_unit"] == "ns"
assert [t["operation"] for t in results["traffic"]] == ["WRITE", "READ"]
assert all(t["dmabuf_ns"]["median"] > 0 for t in results["traffic"])
assert [r["bytes"] for r in results["registration"]] == [4096, 65536]
' "$work/json" 2> "$work/output"; then
	echo "ok $number - bench, JSON"
else
	sed 's/^/# /' "$work/output"
	echo "not ok $number - bench, JSON"
	failed=1
fi
echo "1..$number"
exit $failed
