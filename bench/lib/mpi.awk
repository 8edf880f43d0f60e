# SPDX-License-Identifier: BSD-2-Clause
# What bench/mpi has measured, summed up. Input: lines "round side size us before after"
# (side: weft or peer; before and after: line latency, ns). Variables: want (rounds of one
# mode), provider, peer, ask:
#   enough  prints a few words about the last round; exit status 0 when every size has
#           enough comparable rounds of one mode
#   text, json  the report; exit status 3 when there are fewer rounds than wanted

# Of a round and size: near or far only when both sides were measured in it.
function pair_mode(r, s,    a, b) {
	a = mode[r, "weft", s]
	b = mode[r, "peer", s]
	return a == b ? a : "mixed"
}

function count(s, m,    i, n) {
	for (i = 1; i <= rounds; i++)
		n += pair_mode(i, s) == m
	return n + 0
}

# How many rounds every size has at least.
function least(m,    i, n) {
	n = count(sizes[1], m)
	for (i = 2; i <= size_count; i++)
		if (count(sizes[i], m) < n)
			n = count(sizes[i], m)
	return n
}

# The median over the rounds of a mode; "" without any.
function median(side, s, m,    n, i, j, v, x) {
	n = 0
	for (i = 1; i <= rounds; i++)
		if (pair_mode(i, s) == m)
			x[++n] = figure[i, side, s]
	for (i = 2; i <= n; i++) {
		v = x[i]
		for (j = i - 1; j >= 1 && x[j] > v; j--)
			x[j + 1] = x[j]
		x[j + 1] = v
	}
	if (n == 0)
		return ""
	return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}

function ratio(s, m,    a, b) {
	a = median("weft", s, m)
	b = median("peer", s, m)
	return a == "" || b == "" || b == 0 ? "" : a / b
}

function size_text(n) {
	if (n >= 1048576 && n % 1048576 == 0)
		return n / 1048576 "MiB"
	return n >= 1024 && n % 1024 == 0 ? n / 1024 "KiB" : n "B"
}

function figure_text(v) {
	return v == "" ? "-" : sprintf(v >= 100 ? "%.1f" : v >= 10 ? "%.2f" : "%.3f", v)
}

function summary(m, n,    i, r, s) {
	for (i = 1; i <= size_count; i++) {
		r = ratio(sizes[i], m)
		if (r != "")
			s = s (s == "" ? "" : ", ") sprintf("%s %.2f", size_text(sizes[i]), r)
	}
	return sprintf("mpi over %s vs %s (%s, %d round%s): %s", provider, peer, m, n, \
		(n == 1 ? "" : "s"), (s == "" ? "nothing to compare" : s))
}

function report_text(m, n,    i, r) {
	printf "\n%-8s %12s %12s %8s %7s  %s\n", "size", provider, peer, "ratio", "rounds", "unit"
	for (i = 1; i <= size_count; i++) {
		r = ratio(sizes[i], m)
		printf "%-8s %12s %12s %8s %7d  us\n", size_text(sizes[i]), \
			figure_text(median("weft", sizes[i], m)), \
			figure_text(median("peer", sizes[i], m)), \
			(r == "" ? "-" : sprintf("%.2f", r)), count(sizes[i], m)
	}
	printf "\nHalf round trips, medians over the %s rounds; ratio: %s over %s.\n", m, \
		provider, peer
	if (n < want)
		printf "Only %d comparable round%s of %d: no figures to rely on.\n", n, \
			(n == 1 ? "" : "s"), want
	print summary(m, n)
}

function json_number(v) {
	return v == "" ? "null" : sprintf("%.6g", v)
}

function samples_json(side, s,    i, text) {
	for (i = 1; i <= rounds; i++)
		text = text (text == "" ? "" : ", ") sprintf("{\"us\": %.6g, " \
			"\"line_ns\": [%s], \"mode\": \"%s\"}", figure[i, side, s], \
			lines[i, side, s], mode[i, side, s])
	return "[" text "]"
}

function report_json(m, n,    i, s, head) {
	head = ENVIRON["MPI_HEAD"]
	gsub(/[\\"]/, "\\\\&", head)
	printf "{\n  \"schema\": 1,\n  \"program\": \"bench/mpi\",\n"
	printf "  \"provider\": \"%s\",\n  \"peer\": \"%s\",\n", provider, peer
	printf "  \"machine\": \"%s\",\n  \"mode\": \"%s\",\n", head, m
	printf "  \"rounds_wanted\": %d,\n  \"rounds_compared\": %d,\n  \"sizes\": [", want, n
	for (i = 1; i <= size_count; i++) {
		s = sizes[i]
		printf "%s\n    {\"bytes\": %d, \"rounds\": %d, \"weft_us\": %s, ", \
			(i > 1 ? "," : ""), s, count(s, m), json_number(median("weft", s, m))
		printf "\"peer_us\": %s, \"ratio\": %s,\n", json_number(median("peer", s, m)), \
			json_number(ratio(s, m))
		printf "     \"weft_samples\": %s,\n     \"peer_samples\": %s}", \
			samples_json("weft", s), samples_json("peer", s)
	}
	printf "\n  ],\n  \"summary\": \"%s\"\n}\n", summary(m, n)
}

{
	figure[$1, $2, $3] = $4
	lines[$1, $2, $3] = $5 ", " $6
	mode[$1, $2, $3] = $5 < 150 && $6 < 150 ? "near" : $5 >= 150 && $6 >= 150 ? "far" : \
		"mixed"
	rounds = $1
	if (!($3 in known)) {
		known[$3] = 1
		sizes[++size_count] = $3
	}
}

END {
	near = least("near")
	far = least("far")
	if (ask == "enough") {
		for (i = 1; i <= size_count; i++)
			now[pair_mode(rounds, sizes[i])]++
		printf "%d near, %d far, %d mixed\n", now["near"], now["far"], now["mixed"]
		exit !(near >= want || far >= want)
	}
	m = near >= far ? "near" : "far"
	n = near >= far ? near : far
	if (ask == "json")
		report_json(m, n)
	else
		report_text(m, n)
	exit n < want ? 3 : 0
}
