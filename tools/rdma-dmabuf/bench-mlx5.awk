# SPDX-License-Identifier: GPL-2.0
#
# From the output of bench_mlx5 on several kernels, an RST table with the kernels
# side by side.

function size(bytes)
{
	if (bytes >= 2 ^ 30)
		return bytes / 2 ^ 30 " GiB"
	if (bytes >= 2 ^ 20)
		return bytes / 2 ^ 20 " MiB"
	return bytes / 2 ^ 10 " KiB"
}

function rule(    i, j, text)
{
	text = "========  ==========="
	for (i = 1; i <= kernels; i++)
		text = text "  =======  ====  ========  ======  ============"
	print text
}

FNR == 1 {
	kernel[++kernels] = $2
	next
}

NF == 7 {
	row = $1 " " $2
	if (!(row in seen)) {
		seen[row] = 1
		rows[++count] = row
	}
	figures[row, kernels] = $3 " " $4 " " $5 " " $6 " " $7
}

END {
	print ".. SPDX-License-Identifier: GPL-2.0"
	print ".. Written by tools/rdma-dmabuf/bench-mlx5."
	print ""
	for (k = 1; k <= kernels; k++)
		printf "%s: Linux %s", (k > 1 ? "; right" : "Left"), kernel[k]
	print "."
	print ""
	rule()
	printf "%-8s  %-11s", "size", "step"
	for (k = 1; k <= kernels; k++)
		printf "  %7s  %4s  %8s  %6s  %12s", "entries", "UMRs", "commands", "faults",
			"instructions"
	print ""
	rule()
	for (i = 1; i <= count; i++) {
		split(rows[i], name)
		printf "%-8s  %-11s", size(name[1]), name[2]
		for (k = 1; k <= kernels; k++) {
			split(figures[rows[i], k], f)
			printf "  %7s  %4s  %8s  %6s  %12s", f[1], f[2], f[3], f[4], f[5]
		}
		print ""
	}
	rule()
}
