#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# RDMA into VRAM by an MR on the dma-buf, against host memory from where the CPU
# copies, on a simulated ConnectX: the targets of "rdma-dmabuf bench --check" as tests.
# Costs are instructions, so the guest needs --icount 0.

tool=$(dirname "$0")/../tools/rdma-dmabuf
sizes=(64K 1M)

echo "TAP version 13"
if [ ! -x "$tool" ]; then
	echo "1..0 # SKIP $tool is not built"
	exit 4
fi
if [ ! -e /sys/class/infiniband/mlx5_0 ]; then
	echo "1..0 # SKIP no mlx5_0"
	exit 4
fi
for size in "${sizes[@]}"; do
	# Two targets for WRITE and two for READ
	"$tool" bench -d mlx5_0 -s "$size" -r 5 -R 0 --instructions --check 2>&1
	echo "status $?"
done | awk -v runs="${#sizes[@]}" '
	function result(good, name) {
		printf "%sok %d - %s\n", good ? "" : "not ", ++tests, name
		failed += !good
	}
	/^exporter / { result(/memory in vram$/, "the data went to VRAM") }
	/ (met|MISSED)$/ { targets++; result(/ met$/, $0) }
	/^status / { result($2 == 0, "the bench ends well") }
	!/ (met|MISSED)$/ { print "# " $0 }
	END {
		result(targets == 4 * runs, "all targets were measured: " targets)
		print "1.." tests
		exit failed > 0
	}'
