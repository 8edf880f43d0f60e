# SPDX-License-Identifier: BSD-2-Clause
# What bench/coll has measured, summed up. Input: lines "ranks side operation bytes
# median_us", several for each cell. Variables: ask (text or json), peer (their names, with
# commas: a cell that all have is compared with the best of them), rounds, processors. Exit
# status 1 when nothing can be compared.

function median(key,    n, i, j, v, x) {
	n = split(values[key], x, " ")
	for (i = 1; i <= n; i++)
		x[i] += 0
	for (i = 2; i <= n; i++) {
		v = x[i]
		for (j = i - 1; j >= 1 && x[j] > v; j--)
			x[j + 1] = x[j]
		x[j + 1] = v
	}
	return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}

function size_text(n) {
	if (n == 0)
		return "-"
	if (n >= 1048576 && n % 1048576 == 0)
		return n / 1048576 "M"
	return n >= 1024 && n % 1024 == 0 ? n / 1024 "K" : n ""
}

function figure(v) {
	return sprintf(v >= 1000 ? "%.0f" : v >= 100 ? "%.1f" : v >= 10 ? "%.2f" : "%.3f", v)
}

function cell_text(c,    p) {
	split(c, p, " ")
	return p[2] (p[3] > 0 ? " " size_text(p[3]) : "") ", " p[1] " rank" \
		(p[1] == 1 ? "" : "s")
}

function summary() {
	if (compared == 0)
		return "coll vs " peer ": nothing to compare"
	return sprintf("coll vs %s: geometric mean %.2f, worst %.2f (%s)", peer, \
		exp(logs / compared), worst, cell_text(worst_cell))
}

function report_text(    i, k, p) {
	print ENVIRON["COLL_HEAD"]
	printf "Times in us: of the slowest rank, median of the calls, median of %d round%s\n", \
		rounds, (rounds == 1 ? "" : "s")
	printf "%5s %-17s %6s %10s", "ranks", "operation", "size", "weft"
	for (k = 1; k <= peers; k++)
		printf " %10s", name[k]
	printf " %8s\n", "ratio"
	for (i = 1; i <= cells; i++) {
		split(cell[i], p, " ")
		printf "%5d %-17s %6s %10s", p[1], p[2], size_text(p[3]), figure(weft[i])
		for (k = 1; k <= peers; k++)
			printf " %10s", figure(each[i, k])
		printf " %8.2f%s\n", weft[i] / other[i], \
			(p[1] > processors ? "  (more ranks than processors)" : "")
	}
	printf "\n%s\n", summary()
}

function report_json(    i, k, p, head) {
	head = ENVIRON["COLL_HEAD"]
	gsub(/[\\"]/, "\\\\&", head)
	printf "{\n  \"schema\": 1,\n  \"program\": \"bench/coll\",\n  \"peer\": \"%s\",\n", peer
	printf "  \"machine\": \"%s\",\n  \"processors\": %d,\n  \"rounds\": %d,\n", head, \
		processors, rounds
	printf "  \"cells\": ["
	for (i = 1; i <= cells; i++) {
		split(cell[i], p, " ")
		printf "%s\n    {\"ranks\": %d, \"operation\": \"%s\", \"bytes\": %d, ", \
			(i > 1 ? "," : ""), p[1], p[2], p[3]
		printf "\"weft_us\": %.6g, \"peer_us\": %.6g, ", weft[i], other[i]
		for (k = 1; k <= peers && peers > 1; k++)
			printf "\"%s_us\": %.6g, ", name[k], each[i, k]
		printf "\"ratio\": %.4g}", weft[i] / other[i]
	}
	printf "\n  ],\n  \"summary\": \"%s\"\n}\n", summary()
}

{
	c = $1 " " $3 " " $4
	values[$2, c] = values[$2, c] " " $5
	if ($2 == "weft" && !(c in known)) {
		known[c] = 1
		order[++all] = c
	}
}

# Whether Weft and all peers have figures of a cell, the next one then.
function cell_take(c,    k) {
	for (k = 1; k <= peers; k++)
		if (!((name[k], c) in values))
			return 0
	cell[++cells] = c
	weft[cells] = median("weft" SUBSEP c)
	for (k = 1; k <= peers; k++) {
		each[cells, k] = median(name[k] SUBSEP c)
		if (k == 1 || each[cells, k] < other[cells])
			other[cells] = each[cells, k]
	}
	return weft[cells] > 0 && other[cells] > 0
}

END {
	peers = split(peer, name, ",")
	for (i = 1; i <= all; i++) {
		c = order[i]
		if (!cell_take(c))
			continue
		ratio = weft[cells] / other[cells]
		logs += log(ratio)
		compared++
		if (ratio > worst) {
			worst = ratio
			worst_cell = c
		}
	}
	if (ask == "json")
		report_json()
	else
		report_text()
	exit compared == 0
}
