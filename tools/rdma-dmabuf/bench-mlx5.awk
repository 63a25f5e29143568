# SPDX-License-Identifier: GPL-2.0
#
# From the output of bench_mlx5 on several kernels, RST tables with the kernels side
# by side: first this project's, on the stock and on the debug kernel, then those of
# kernels that have MRs of their own; the last one is the bar. Status 1 if an MR of
# this project gives the adapter more work than the last one does.

BEGIN {
	OURS = 2
	ENTRIES = 1; UMRS = 2; COMMANDS = 3; FAULTS = 4; INSTRUCTIONS = 5; EXPORTER = 6
}

function size(bytes)
{
	if (bytes >= 2 ^ 30)
		return bytes / 2 ^ 30 " GiB"
	if (bytes >= 2 ^ 20)
		return bytes / 2 ^ 20 " MiB"
	return bytes / 2 ^ 10 " KiB"
}

function repeat(character, count,    text)
{
	while (count-- > 0)
		text = text character
	return text
}

# Columns of a table: column(HEADING, WIDTH), and spans above them: span(HEADING, COLUMNS)
function column(heading, width)
{
	columns++
	headings[columns] = heading
	widths[columns] = width
}

function span(heading, over)
{
	spans++
	span_headings[spans] = heading
	span_over[spans] = over
}

function row(cells,    i, text)
{
	for (i = 1; i <= columns; i++)
		text = text sprintf(i > 2 ? "%" widths[i] "s  " : "%-" widths[i] "s  ", cells[i])
	sub(/ +$/, "", text)
	print text
}

function rule(    i, cells)
{
	for (i = 1; i <= columns; i++)
		cells[i] = repeat("=", widths[i])
	row(cells)
}

function head(    i, j, at, width, names, lines)
{
	rule()
	for (i = 1; i <= spans; i++) {
		width = -2
		for (j = 0; j < span_over[i]; j++)
			width += widths[++at] + 2
		names = names sprintf("%-" width "s  ", span_headings[i])
		lines = lines repeat("-", width) "  "
	}
	sub(/ +$/, "", names)
	sub(/ +$/, "", lines)
	print names
	print lines
	row(headings)
	rule()
}

function begin_table()
{
	columns = spans = 0
	column("size", 6)
	column("step", 11)
	span("..", 2)
}

function figure(r, k, what,    f)
{
	split(figures[rows[r], k], f)
	return f[what]
}

# Instructions that are not the exporter's, or "-"
function own(r, k,    all)
{
	all = figure(r, k, INSTRUCTIONS)
	return all ~ /[0-9]/ ? all - figure(r, k, EXPORTER) : "-"
}

function name_row(r, cells,    name)
{
	split(rows[r], name)
	cells[1] = size(name[1])
	cells[2] = name[2]
}

function work_table(    r, k, what, n, cells)
{
	begin_table()
	for (k = 1; k <= kernels; k++) {
		span(kernel[k], 4)
		column("entries", 7)
		column("UMRs", 4)
		column("commands", 8)
		column("faults", 6)
	}
	head()
	for (r = 1; r <= count; r++) {
		name_row(r, cells)
		n = 2
		for (k = 1; k <= kernels; k++)
			for (what = ENTRIES; what <= FAULTS; what++)
				cells[++n] = figure(r, k, what)
		row(cells)
	}
	rule()
}

function instruction_table(    r, k, n, cells)
{
	begin_table()
	for (k = 1; k <= kernels; k++) {
		if (k == OURS)
			continue
		span(kernel[k], 3)
		column("all", 8)
		column("exporter", 8)
		column("rest", 8)
	}
	span("ratio", 1)
	column("of rests", 8)
	head()
	for (r = 1; r <= count; r++) {
		name_row(r, cells)
		n = 2
		for (k = 1; k <= kernels; k++) {
			if (k == OURS)
				continue
			cells[++n] = figure(r, k, INSTRUCTIONS)
			cells[++n] = figure(r, k, EXPORTER)
			cells[++n] = own(r, k)
		}
		cells[++n] = own(r, 1) ~ /[0-9]/ ? sprintf("%.2f", own(r, 1) / own(r, kernels)) : "-"
		row(cells)
	}
	rule()
}

# Commands are those of the first round and of later ones: "1,0".
function above(ours, bar,    a, b)
{
	split(ours, a, ",")
	split(bar, b, ",")
	return (a[1] ~ /[0-9]/ && a[1] + 0 > b[1] + 0) || (a[2] ~ /[0-9]/ && a[2] + 0 > b[2] + 0)
}

function check(    r, k, what, ours, bar, wrong)
{
	for (r = 1; r <= count; r++) {
		for (k = 1; k <= OURS; k++) {
			for (what = ENTRIES; what <= COMMANDS; what++) {
				ours = figure(r, k, what)
				bar = figure(r, kernels, what)
				if (!above(ours, bar))
					continue
				printf "bench-mlx5: %s: %s on %s, %s on %s\n", rows[r], ours,
					kernel[k], bar, kernel[kernels] > "/dev/stderr"
				wrong = 1
			}
		}
	}
	return wrong
}

FNR == 1 {
	kernel[++kernels] = $2
	next
}

NF == 8 {
	key = $1 " " $2
	if (!(key in seen)) {
		seen[key] = 1
		rows[++count] = key
	}
	$1 = $2 = ""
	figures[key, kernels] = $0
}

END {
	print ".. SPDX-License-Identifier: GPL-2.0"
	print ".. Written by tools/rdma-dmabuf/bench-mlx5."
	print ""
	print "Work for the adapter:"
	print ""
	work_table()
	print ""
	print "Instructions:"
	print ""
	instruction_table()
	exit check()
}
