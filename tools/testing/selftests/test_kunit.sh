#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The KUnit test of the dma-buf window, as TAP for prove.
#
#   test_kunit.sh [PARAMETER]...      as seed=1 layouts=100000, for the module

set -u
results=/sys/kernel/debug/kunit/umem_dmabuf_window/results

if ! modprobe -q kunit; then
	echo "1..0 # SKIP this kernel has no KUnit"
	[ -n "${HARNESS_ACTIVE:-}" ] || exit 4
	exit 0
fi
if ! modprobe umem_dmabuf_test "$@" || ! [ -e $results ]; then
	echo "Bail out! no results of umem_dmabuf_test; see dmesg"
	exit 1
fi

# The suite's cases are the tests; its own line sums them up once more.
sed -n 's/^    //p' $results
verdict=$(tail -n 1 $results)
modprobe -r umem_dmabuf_test
[[ $verdict == "ok 1 - "* ]]
