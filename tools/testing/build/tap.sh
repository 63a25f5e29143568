# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# TAP for shell tests, to be sourced.
#
#	ok STATUS NAME		one test; passed if STATUS is 0
#	is GOT WANT NAME	same, prints both if they differ
#	skip NAME WHY		cannot be made here
#	diag [TEXT]		remark, or what stdin says
#	tap_done		the plan; the exit status

tap_n=0
tap_failed=0

ok() {
	tap_n=$((tap_n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $tap_n - $2"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_n - $2"
	fi
}
is() {
	local same=0
	[ "$1" = "$2" ] || same=1
	ok $same "$3"
	[ $same = 0 ] || { echo "got:  $1"; echo "want: $2"; } | diag
}
skip() {
	tap_n=$((tap_n + 1))
	echo "ok $tap_n - $1 # SKIP $2"
}
diag() {
	if [ $# -gt 0 ]; then echo "$*"; else cat; fi | sed 's/^/# /'
}
tap_done() {
	echo "1..$tap_n"
	exit $((tap_failed > 0))
}
