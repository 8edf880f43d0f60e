#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft plot draws what weft perf --json wrote: as many points as rows, bands where there are any,
# two files beside each other; and says what it cannot read.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
export FI_PROVIDER=tcp
measure() {
	timeout 120 "$weft" run -n 2 --no-prefix "$weft" perf "$1" --sizes 8:32K --iters 8 --json \
		>"$2" 2>"$tmp/err"
}
ok "there is a measurement" measure allreduce "$tmp/a.json"
ok "and another" measure broadcast "$tmp/b.json"

draw() {
	"$weft" plot --out "$tmp/plot.svg" "$@" 2>"$tmp/err"
}
rows=$(grep -c '"median_us"' "$tmp/a.json")
ok "one file is drawn" draw "$tmp/a.json"
ok "it is SVG" grep -q '^<svg xmlns="http://www.w3.org/2000/svg"' "$tmp/plot.svg"
ok "whole" test "$(tail -n 1 "$tmp/plot.svg")" = "</svg>"
ok "that needs nothing else" is_empty "$(grep -E 'href|@import|url\(|<script' "$tmp/plot.svg")"
ok "on a white page" grep -q '<rect width="100%" height="100%" fill="#ffffff"/>' "$tmp/plot.svg"
ok "a point for each row" test "$(grep -c '<circle' "$tmp/plot.svg")" = "$rows"
ok "sizes as people write them" grep -q '>8K</text>' "$tmp/plot.svg"
ok "a band between them" test "$(grep -c 'class="band"' "$tmp/plot.svg")" = $((rows - 1))
ok "and what it is of" grep -q '>2 ranks over tcp' "$tmp/plot.svg"
"$weft" plot "$tmp/a.json" >"$tmp/again.svg"
ok "to standard output the same" cmp "$tmp/plot.svg" "$tmp/again.svg"
if command -v python3 >/dev/null; then
	ok "a parser of XML takes it" python3 -c \
		'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$tmp/plot.svg"
else
	skip 1 "python3 is not installed"
fi
ok "two files beside each other" draw --what bandwidth "$tmp/a.json" "$tmp/b.json"
ok "with both names" test "$(grep -cE '>(A: allreduce|B: broadcast)<' "$tmp/plot.svg")" = 2
ok "and both bands" test "$(grep -o 'class="band" fill="#[0-9a-f]*"' "$tmp/plot.svg" | sort -u | wc -l)" = 2
ok "and the unit" grep -q '>bus bandwidth, GB/s<' "$tmp/plot.svg"

sed '/"median_low_us"/d; /"median_high_us"/d' "$tmp/a.json" >"$tmp/old.json"
ok "a document without bands" draw "$tmp/old.json"
ok "has points and no bands" test "$(grep -c '<circle' "$tmp/plot.svg").$(grep -c 'class="band"' "$tmp/plot.svg")" = "$rows.0"

# refused TEXT ARGUMENT...: status 1, and nothing written.
refused() {
	local text=$1

	shift
	rm -f "$tmp/none.svg"
	! "$weft" plot --out "$tmp/none.svg" "$@" 2>"$tmp/err" && grep -qF -- "$text" "$tmp/err" &&
		[ ! -e "$tmp/none.svg" ]
}
ok "an operation that is not there" refused 'nothing to draw: no row of scatter' --op scatter "$tmp/a.json"
ok "a file that is not there" refused 'no.json: No such file' "$tmp/no.json"
head -c 900 "$tmp/a.json" >"$tmp/short.json"
ok "one cut short: the place, and what it must be" refused 'perf --json wrote, whole' "$tmp/short.json"
echo '{"schema": 1}' >"$tmp/other.json"
ok "another's" refused 'it is JSON, but not what weft perf --json of this version writes' "$tmp/other.json"
: >"$tmp/empty.json"
ok "an empty one" refused 'line 1, column 1' "$tmp/empty.json"
sed 's/"median_us": [0-9.]*/"median_us": 1e999/' "$tmp/a.json" >"$tmp/big.json"
ok "a number that is none" refused 'a number was wanted' "$tmp/big.json"
ok "a folder" refused "$tmp" "$tmp"
ok "a place that can't be written" bash -c "! '$weft' plot --out '$tmp/no/where' '$tmp/a.json' 2>'$tmp/err'"
# wrong TEXT ARGUMENT...: status 2.
wrong() {
	local text=$1 rc

	shift
	"$weft" plot "$@" >/dev/null 2>"$tmp/err"
	rc=$?
	[ "$rc" = 2 ] && grep -qF -- "$text" "$tmp/err"
}
ok "no file" wrong 'one or two files'
ok "three" wrong 'one or two files' a b c
ok "what there isn't" wrong '--what is time or bandwidth' --what speed a

done_testing
