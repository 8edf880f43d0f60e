#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft perf and weft info from outside: tables, JSON, options, statuses.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh"
weft=$build/weft
export FI_PROVIDER=tcp
unset WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_JOB WEFT_TTY

# status WANT NAME COMMAND...: output in $tmp/out and $tmp/err
status() {
	local want=$1 name=$2 got

	shift 2
	timeout 100 "$@" >"$tmp/out" 2>"$tmp/err"
	got=$?
	if ! ok "$name" test $got = "$want"; then
		diag "exit status $got, want $want"
		diag "$(tail -n 5 "$tmp/err")"
	fi
}
says() { # WHERE PATTERN NAME
	ok "$3" grep -qE -- "$2" "$tmp/$1"
}
rows() { # PATTERN COUNT NAME: that many rows of the table are good
	ok "$3" test "$(grep -cE "$1 +ok\$" "$tmp/out")" = "$2"
}

# ---- tables
status 0 "one rank alone" "$weft" perf all --sizes 8:64K --budget 1
rows "(binomial|ring|recursive-doubling|dissemination) .*" 25 "25 good rows"
says out '^weft [0-9.]+, 1 rank on .*, provider tcp.*: weft perf all --sizes 8:64K' "head"
ok "the last line has the figures" \
	grep -qE '^1 rank over .*: 25 measurements in .* 0 wrong; best' <(tail -n 1 "$tmp/out")
ok "no line wraps in 100 columns" is_empty "$(head -n -1 "$tmp/out" | grep -E '.{101}')"
ok "no progress where nobody looks" is_empty "$(cat "$tmp/err")"

status 0 "three ranks" "$weft" run -n 3 "$weft" perf all --sizes 1:5000 --iters 4
rows ".* 4 .*" 22 "22 good rows of 4 calls"
ok "rank 0 alone reports" is_empty "$(grep -v '^\[0\]' "$tmp/out")"
says out '^\[0\] +4 binomial' "a size is at least one element"
says out '^\[0\] +5000 binomial' "the last size is what was asked for"
status 0 "in place" "$weft" run -n 3 "$weft" perf all --in-place --sizes 8:20000 --iters 3
says out 'allreduce, fp32 sum, in place' "says so"
status 0 "another type and operation" "$weft" run -n 3 "$weft" perf allreduce --type bf16 \
	--op max --sizes 2:20000 --iters 3
says out 'allreduce, bf16 max' "says so"
status 0 "one algorithm" "$weft" run -n 3 "$weft" perf all --algo ring --sizes 64:256 --iters 3
says out '^.0. broadcast: left out: no algorithm "ring"' "operations without it are left out"
rows " ring .*" 4 "the others have it"
WEFT_TTY=1 status 0 "under a terminal" "$weft" perf barrier --iters 3
says err 'barrier .*1 of 1' "progress"

# ---- what was moved
status 0 "--stats" "$weft" run -n 3 "$weft" perf allgather --sizes 1M --iters 3 --stats
says out ' 0  bytes staged by coll$' "all-gather at 1 MiB stages nothing"
says out ' [1-9][0-9]*  bytes copied by plans' "the caller's own block is on its own line"

# ---- JSON
if command -v python3 >/dev/null; then
	status 0 "--json" "$weft" run -n 2 --no-prefix "$weft" perf all --json --stats \
		--sizes 8:1K --iters 3
	ok "is one document, complete" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == 1 and d["ranks"] == 2 and d["wrong"] == 0
assert [c["name"] for c in d["collectives"]] == ["barrier", "broadcast", "allgather", "allreduce"]
rows = [r for c in d["collectives"] for r in c["results"]]
assert d["measurements"] == len(rows) == 16 and all(r["ok"] and r["calls"] == 3 for r in rows)
assert all("staged_bytes" in c["stats"] for c in d["collectives"])
' "$tmp/out"
	WEFT_JOB=private status 0 "weft info --json" "$weft" info --json
	ok "is one document" python3 -c '
import json, sys
text = open(sys.argv[1]).read()
d = json.loads(text)
assert d["schema"] == 1 and d["provider"] and d["algorithms"] and d["host"]["cpus"] >= 1
assert d["variables"]["FI_PROVIDER"] == "tcp" and "private" not in text
assert "fp32" in d["reductions"]["types"] and "fp8_e4m3" not in d["reductions"]["types"]
' "$tmp/out"
else
	skip 4 "no python3 to read JSON with (test_json checks the writer)"
fi

# ---- info
WEFT_JOB=private status 0 "weft info" "$weft" info
says out 'allreduce +ring ' "algorithms"
says out '^  tcp.* used unless another is named' "the provider that would be used"
says out 'weft is not among them. FI_PROVIDER leaves it out' "why weft would not be"
says out '^  FI_PROVIDER=tcp$' "variables"
ok "the secret is not shown" is_empty "$(grep private "$tmp/out")"
ok "the last line has the figures" \
	grep -qE '^[0-9]+ providers?, [0-9]+ algorithms, 12 types' <(tail -n 1 "$tmp/out")
FI_PROVIDER=none_such status 1 "without any provider" "$weft" info
says out 'none: no libfabric provider' "says so"
status 2 "info with an argument" "$weft" info more
status 0 "info --help" "$weft" info --help

# ---- what is wrong
status 1 "an unknown algorithm" "$weft" run -n 2 "$weft" perf allreduce --algo fast
says err 'no algorithm "fast" .*ring, recursive-doubling' "lists those there are"
status 1 "an algorithm that nobody has" "$weft" perf all --algo fast
status 1 "a pair that is not supported" "$weft" perf allreduce --op band
says err 'band of fp32 is not supported.*sum, prod' "lists those there are"
FI_PROVIDER=none_such status 1 "an unknown provider" "$weft" perf barrier
says err 'none_such' "is named"
status 2 "an unknown operation" "$weft" perf sort
status 2 "no operation" "$weft" perf
status 2 "two operations" "$weft" perf barrier broadcast
status 2 "sizes in the wrong order" "$weft" perf all --sizes 8K:8
status 2 "sizes that are none" "$weft" perf all --sizes 8Q
status 2 "a size of nothing" "$weft" perf all --sizes 0:8
status 2 "a type that is none" "$weft" perf all --type fp31
status 2 "an operation that is none" "$weft" perf all --op sub
status 2 "too many calls" "$weft" perf all --iters 2001
status 2 "a budget that is none" "$weft" perf all --budget -1
status 2 "an unknown option" "$weft" perf all --frobnicate
status 0 "perf --help" "$weft" perf --help
status 2 "an unknown command" "$weft" frobnicate

done_testing
