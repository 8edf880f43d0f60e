#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft trace: dumps of two ranks as text and as JSON, files that are none, wrong usage.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

weft=$build/weft
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$build/prov}
mkdir "$tmp/dumps"
# By messages, whose sends have peers.
WEFT_LINES=off timeout 120 "$build/coll/trace/tests/test_trace" "$tmp/dumps" ||
	skip_all "no dumps: coll/trace/tests/test_trace says why"
dumps=("$tmp"/dumps/asked-0 "$tmp"/dumps/asked-1)

"$weft" trace dump "${dumps[@]}" >"$tmp/text"
ok "dump takes two files" test $? = 0
ok "it says whose they are" grep -q 'asked-1: rank 1 of 2 on .*; asked for$' "$tmp/text"
ok "calls" test "$(grep -c ' call .*allreduce .*count 1$' "$tmp/text")" = 10
ok "and steps with their peers" grep -q ' step .*send  rank 1  bytes ' "$tmp/text"

"$weft" trace json --out "$tmp/json" "${dumps[@]}"
ok "json takes them too" test $? = 0
if command -v python3 >/dev/null; then
	cat >"$tmp/look" <<'END'
import json, sys
events = json.load(open(sys.argv[1]))["traceEvents"]
bars = [e for e in events if e["ph"] == "b" and e["name"] == "allreduce"]
ends = {e["id"]: e for e in events if e["ph"] == "e"}
assert len(bars) == 10, bars
assert {e["pid"] for e in bars} == {0, 1}
assert all(ends[b["id"]]["ts"] >= b["ts"] >= 0 for b in bars)
assert any(e["ph"] == "i" and e["name"] == "step send" for e in events)
END
	ok "and it is what a viewer reads" python3 "$tmp/look" "$tmp/json"
else
	skip 1 "python3 is not installed"
fi
"$weft" trace json "${dumps[@]}" >"$tmp/again"
ok "to standard output the same" cmp "$tmp/json" "$tmp/again"

head -c 300 "${dumps[0]}" >"$tmp/short"
"$weft" trace dump "$tmp/short" "${dumps[1]}" >"$tmp/text" 2>"$tmp/err"
ok "a file cut short is status 1" test $? = 1
ok "and said" grep -q 'short: it is cut short' "$tmp/err"
ok "and the next is shown" grep -q 'rank 1 of 2' "$tmp/text"
"$weft" trace json --out "$tmp/none" "$tmp/short" 2>"$tmp/err"
ok "no JSON of nothing" test $? = 1 -a ! -e "$tmp/none"
ok "a place that can't be written" bash -c \
	"! '$weft' trace json --out '$tmp/no/where' '${dumps[0]}' 2>'$tmp/err'"
ok "is named" grep -q 'no/where: No such file' "$tmp/err"

# wrong TEXT ARGUMENT...: status 2.
wrong() {
	local text=$1 rc

	shift
	"$weft" trace "$@" >/dev/null 2>"$tmp/err"
	rc=$?
	[ "$rc" = 2 ] && grep -qF -- "$text" "$tmp/err"
}
ok "no word" wrong 'dump, json or analyze is wanted'
ok "another word" wrong '"show"' show x
ok "no file" wrong 'no dump is named' dump
ok "an option that is of the others" wrong '--out is for dump and json' analyze --out x "${dumps[0]}"
ok "an unknown option" wrong '--deep' --deep
ok "--stuck of another" wrong '--stuck and --json are for analyze' dump --stuck 1 x
ok "--stuck that is no number" wrong '--stuck wants seconds' analyze --stuck soon "${dumps[0]}"

"$weft" trace analyze "${dumps[@]}" >"$tmp/text" 2>"$tmp/err"
ok "of ranks that all went on nothing is said" test $? = 0
ok "in words" grep -q '^verdict: nothing stands still$' "$tmp/text"
"$weft" trace analyze "$tmp/short" "${dumps[1]}" >"$tmp/text" 2>"$tmp/err"
ok "one that is cut short is left out, and said" grep -q 'short: it is cut short' "$tmp/err"
ok "and counts as missing" grep -q '^1 of 2 ranks gave a dump$' "$tmp/text"
"$weft" trace analyze "$tmp/short" >"$tmp/text" 2>"$tmp/err"
ok "nothing to analyze is status 1" test $? = 1
"$weft" trace analyze --pids 1,x 2>"$tmp/err"
ok "processes are numbers" grep -q 'numbers of processes are wanted' "$tmp/err"
"$weft" trace dump $$ 2>"$tmp/err"
ok "a process without a recorder is said" grep -q "process $$: it has no flight recorder" "$tmp/err"

done_testing
