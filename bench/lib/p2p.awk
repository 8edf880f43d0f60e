# SPDX-License-Identifier: BSD-2-Clause
# What bench/p2p has measured, summed up. Input: the rounds file, lines "round before
# after" (line latency, ns), then the samples file, lines "round side test figure before
# after"; those of the side "floor" have no "before after" and need no mode. Variables:
# want (rounds of one mode), any (1: every round compares, whatever its mode), ask:
#   enough  prints a few words about the last round; exit status 0 when every test has
#           enough comparable rounds of one mode
#   text, json  the report; exit status 3 when there are fewer rounds than wanted

function mode_of(before, after) {
	if (any)
		return "any"
	if (before < 150 && after < 150)
		return "near"
	return before >= 150 && after >= 150 ? "far" : "mixed"
}

# Of a round and test: near or far only when both sides were measured in it.
function pair_mode(r, t,    a, b) {
	a = mode[r, "weft", t]
	b = mode[r, "peer", t]
	if (b == "" && !(t in peer_has))
		return a
	return a == b ? a : "mixed"
}

# The median of a test's figures of a side over the rounds of a mode; "" without any.
function median(side, t, m,    n, i, j, v, x) {
	n = 0
	for (i = 1; i <= rounds; i++)
		if (pair_mode(i, t) == m && (i, side, t) in figure)
			x[++n] = figure[i, side, t]
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

# The floor's median over all rounds; "" without any.
function floor_of(t,    i, j, n, v, x) {
	for (i = 1; i <= rounds; i++) {
		if (!((i, t) in floor))
			continue
		v = floor[i, t]
		for (j = n++; j >= 1 && x[j] > v; j--)
			x[j + 1] = x[j]
		x[j + 1] = v
	}
	if (n == 0)
		return ""
	return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
}

function count(t, m,    i, n) {
	n = 0
	for (i = 1; i <= rounds; i++)
		n += pair_mode(i, t) == m
	return n
}

# How many rounds every test has at least.
function least(m,    i, n) {
	n = count(tests[1], m)
	for (i = 2; i <= test_count; i++)
		if (count(tests[i], m) < n)
			n = count(tests[i], m)
	return n
}

function size_text(n) {
	if (n >= 1048576 && n % 1048576 == 0)
		return n / 1048576 " MiB"
	return n >= 1024 && n % 1024 == 0 ? n / 1024 " KiB" : n " B"
}

# Which memory Weft's side has; what the test is without that.
function memory_of(t) {
	return t ~ /^shared-/ ? "shared" : "malloc"
}

function kind_of(t,    p) {
	sub(/^shared-/, "", t)
	split(t, p, ":")
	return p[1]
}

function bytes_of(t,    p) {
	split(t, p, ":")
	return p[2]
}

function test_text(t) {
	return name_of[kind_of(t)] (memory_of(t) == "shared" ? ", shared " : " ") \
		size_text(bytes_of(t))
}

function number_text(v) {
	if (v == "")
		return "-"
	return sprintf(v >= 100 ? "%.0f" : v >= 10 ? "%.1f" : v >= 1 ? "%.2f" : "%.3f", v)
}

# Weft over the peer; "" when one of them is missing.
function ratio(t, m,    a, b) {
	a = median("weft", t, m)
	b = median("peer", t, m)
	return a == "" || b == "" || b == 0 ? "" : a / b
}

# One item of the last line; nothing when it was not measured on both sides.
function item(text, t, m, tail,    r) {
	r = ratio(t, m)
	return r == "" ? "" : ", " text " " sprintf("%.2f", r) tail
}

function summary(m, n,    s) {
	s = item("8B tagged", "lat:8", m, "") item("rate 8B", "rate:8", m, "x") \
		item("bw 1MiB", "bw:1048576", m, "x") item("write 8B polled", "put:8", m, "") \
		item("write 8B polled shared", "shared-put:8", m, "")
	if (wire == "uet")
		s = s item("write bw 1MiB", "putbw:1048576", m, "x") \
			item("bytes per CPU 1MiB", "effort:1048576", m, "x")
	return sprintf("p2p %s vs %s (%s, %d round%s): %s", wire, peer, m, n, \
		(n == 1 ? "" : "s"), (s == "" ? "nothing to compare" : substr(s, 3)))
}

function report_text(m, n,    i, t) {
	printf "\n%-31s %12s %12s %8s %7s  %s\n", "test", "weft", peer, "ratio", "rounds", "unit"
	for (i = 1; i <= test_count; i++) {
		t = tests[i]
		printf "%-31s %12s %12s %8s %7d  %s\n", test_text(t), \
			number_text(median("weft", t, m)), number_text(median("peer", t, m)), \
			(ratio(t, m) == "" ? "-" : sprintf("%.2f", ratio(t, m))), count(t, m), \
			unit_of[kind_of(t)]
	}
	if (wire == "verbs")
		printf "\nLatencies are medians of their turns."
	printf "\nMedians over %s rounds; ratio: weft over %s. Memory: malloc", \
		(any ? "all" : "the " m), peer
	if (wire == "shm")
		printf "; shared: weft\047s from\nWEFT_FI_MEM_OPS, %s\047s as in the row without", peer
	printf ".\n"
	printf "Writes of weft land: %s\n", ENVIRON["P2P_LANDS_WEFT"]
	printf "Writes of %s land: %s\n", peer, ENVIRON["P2P_LANDS_PEER"]
	if (ENVIRON["P2P_REMARK"] != "")
		printf "%s\n", ENVIRON["P2P_REMARK"]
	if (floor_of("lat:8") != "")
		printf "Floor (perftest, medians of all rounds): ib_send_lat 8 B %s us, " \
			"ib_write_bw 1 MiB %s GB/s\n", number_text(floor_of("lat:8")), \
			number_text(floor_of("putbw:1048576"))
	if (n < want)
		printf "Only %d comparable round%s of %d: no figures to rely on.\n", n, \
			(n == 1 ? "" : "s"), want
	print summary(m, n)
}

function json_number(v) {
	return v == "" ? "null" : sprintf("%.6g", v)
}

function json_string(s) {
	gsub(/[\\"]/, "\\\\&", s)
	return "\"" s "\""
}

function samples_json(side, t,    i, s) {
	for (i = 1; i <= rounds; i++)
		if ((i, side, t) in figure)
			s = s (s == "" ? "" : ", ") sprintf("{\"round\": %d, \"value\": %.6g, " \
				"\"line_ns\": [%s], \"mode\": \"%s\"}", i, figure[i, side, t], \
				lines[i, side, t], mode[i, side, t])
	return "[" s "]"
}

function report_json(m, n,    i, t) {
	printf "{\n  \"schema\": 2,\n  \"program\": \"bench/p2p\",\n"
	printf "  \"wire\": %s,\n  \"peer\": %s,\n", json_string(wire), json_string(peer)
	printf "  \"machine\": %s,\n", json_string(ENVIRON["P2P_HEAD"])
	printf "  \"processors\": [%d, %d],\n  \"milliseconds\": %d,\n", cpu_a, cpu_b, ms
	printf "  \"mode\": \"%s\",\n", m
	printf "  \"rounds_wanted\": %d,\n  \"rounds_compared\": %d,\n  \"rounds\": [", want, n
	for (i = 1; i <= rounds; i++)
		printf "%s\n    {\"round\": %d, \"line_ns\": [%s]}", (i > 1 ? "," : ""), i, \
			round_lines[i]
	printf "\n  ],\n  \"writes_land\": {\"weft\": %s, \"peer\": %s},\n", \
		json_string(ENVIRON["P2P_LANDS_WEFT"]), json_string(ENVIRON["P2P_LANDS_PEER"])
	printf "  \"floor\": {\"ib_send_lat_8_us\": %s, \"ib_write_bw_1mib_gbs\": %s},\n", \
		json_number(floor_of("lat:8")), json_number(floor_of("putbw:1048576"))
	printf "  \"tests\": ["
	for (i = 1; i <= test_count; i++) {
		t = tests[i]
		printf "%s\n    {\"test\": %s, \"bytes\": %d, \"unit\": %s, \"rounds\": %d,\n", \
			(i > 1 ? "," : ""), json_string(name_of[kind_of(t)]), bytes_of(t), \
			json_string(unit_of[kind_of(t)]), count(t, m)
		printf "     \"weft_memory\": \"%s\", \"peer_memory\": \"%s\",\n", \
			memory_of(t), (peer == "ucx" && wire == "shm" && kind_of(t) ~ /^put/ ? "shared" : "malloc")
		printf "     \"weft\": %s, \"peer\": %s, \"ratio\": %s,\n", \
			json_number(median("weft", t, m)), json_number(median("peer", t, m)), \
			json_number(ratio(t, m))
		printf "     \"weft_samples\": %s,\n     \"peer_samples\": %s}", \
			samples_json("weft", t), samples_json("peer", t)
	}
	printf "\n  ],\n  \"summary\": \"%s\"\n}\n", summary(m, n)
}

BEGIN {
	name_of["lat"] = "tagged half round trip"
	unit_of["lat"] = unit_of["put"] = unit_of["putdone"] = "us"
	name_of["rate"] = "tagged rate"
	unit_of["rate"] = "million/s"
	name_of["bw"] = "tagged bandwidth"
	unit_of["bw"] = unit_of["putbw"] = "GB/s"
	name_of["effort"] = "tagged, sleeping, bytes per CPU"
	unit_of["effort"] = "GB/CPU s"
	name_of["put"] = "write, polled"
	name_of["putdone"] = "write, completion"
	name_of["putcall"] = "write, polled, target calls"
	name_of["putcalldone"] = "write, completion, target calls"
	unit_of["putcall"] = unit_of["putcalldone"] = "us"
	name_of["putbw"] = "write bandwidth"
}

FNR == NR {
	rounds = $1
	round_lines[$1] = $2 ", " $3
	next
}

$2 == "floor" {
	floor[$1, $3] = $4
	next
}

{
	figure[$1, $2, $3] = $4
	lines[$1, $2, $3] = $5 ", " $6
	mode[$1, $2, $3] = mode_of($5 + 0, $6 + 0)
	if ($2 == "peer")
		peer_has[$3] = 1
	if (!($3 in known)) {
		known[$3] = 1
		tests[++test_count] = $3
	}
}

END {
	near = least(any ? "any" : "near")
	far = least("far")
	if (ask == "enough") {
		for (i = 1; i <= test_count; i++)
			now[pair_mode(rounds, tests[i])]++
		if (any) {
			printf "measured\n"
			exit near < want
		}
		printf "%d near, %d far, %d mixed\n", now["near"], now["far"], now["mixed"]
		exit !(near >= want || far >= want)
	}
	m = any ? "any" : near >= far ? "near" : "far"
	n = near >= far ? near : far
	if (ask == "json")
		report_json(m, n)
	else
		report_text(m, n)
	exit n < want ? 3 : 0
}
