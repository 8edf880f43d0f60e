#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft perf and weft info from outside: tables, JSON, options, statuses.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99
weft=$build/weft
export FI_PROVIDER=tcp
unset WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_JOB WEFT_TTY WEFT_SEED

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
rows "(binomial|ring|recursive-(doubling|halving)|halving-doubling|dissemination|flat|direct|pairwise|lines) .*" 65 "65 good rows"
says out '^weft [0-9.]+, 1 rank on .*, provider tcp.*: weft perf all --sizes 8:64K' "head"
ok "the last line has the figures" \
	grep -qE '^1 rank over .*: 65 measurements in .* 0 wrong; fastest barrier' <(tail -n 1 "$tmp/out")
ok "no line wraps in 100 columns" is_empty "$(head -n -1 "$tmp/out" | grep -E '.{101}')"
ok "no progress where nobody looks" is_empty "$(cat "$tmp/err")"

status 0 "three ranks" "$weft" run -n 3 "$weft" perf all --sizes 4:5000 --iters 4
rows ".* 4\\* .*" 57 "57 good rows of 4 calls"
says out "^.0. \\* fewer than 5 calls" "which are few, and marked"
ok "rank 0 alone reports" is_empty "$(grep -v '^\[0\]' "$tmp/out")"
says out '^\[0\] +4 (flat|lines)' "the first size is what was asked for"
ok "the last line tells fastest and best" grep -qE \
	'0 wrong; fastest barrier [0-9.]+ us; best bus GB/s: broadcast [0-9.]+, allgather [0-9.]+, allreduce' \
	<(tail -n 1 "$tmp/out")
says out ' [0-9.]+[kMG] +[0-9.]+[kMG] +ok$' "bandwidths have a unit"
says out '^\[0\] +5000 (flat|lines)' "the last size is what was asked for"
status 0 "with counts" "$weft" run -n 3 "$weft" perf allv --sizes 4:5000 --iters 4
rows ".* 4\\* .*" 42 "42 good rows of those"
says out '^.0. alltoallv_dynamic, fp32' "the dynamic one is among them"
status 0 "in place" "$weft" run -n 3 "$weft" perf all --in-place --sizes 8:20000 --iters 3
says out 'allreduce, fp32 sum, in place' "says so"
status 0 "another type and operation" "$weft" run -n 3 "$weft" perf allreduce --type bf16 \
	--op max --sizes 2:20000 --iters 3
says out 'allreduce, bf16 max' "says so"
status 0 "one algorithm" "$weft" run -n 3 "$weft" perf all --algo ring --sizes 64:256 --iters 3
says out '^.0. broadcast: left out: no algorithm "ring"' "operations without it are left out"
rows " ring .*" 6 "the others have it"
WEFT_ALGO=allreduce=ring:4k,broadcast=flat status 0 "algorithms of the environment" \
	"$weft" run -n 3 "$weft" perf all --sizes 64:256 --iters 3
says out '^.0. +64 ring  .*ok$' "the one that it names"
rows " flat .*" 2 "the other one"
WEFT_ALGO=allreduce=rung status 1 "one that there is not" "$weft" perf allreduce
says err 'no algorithm "rung" for allreduce.*ring, recursive' "lists those there are"
WEFT_ALGO=broadcast=flat status 0 "one that cannot be done" \
	"$weft" run -n 17 "$weft" perf broadcast --sizes 8 --iters 1
says err 'WEFT_ALGO: algorithm "flat" of broadcast cannot .* 17 ranks' "says so"
WEFT_TTY=1 status 0 "under a terminal" "$weft" perf barrier --iters 3
says err 'barrier .*1 of 1' "progress"

# ---- what was moved by messages: lines stage and send nothing
WEFT_LINES=off status 0 "--stats" "$weft" run -n 3 "$weft" perf allgather --sizes 1M --iters 3 --stats
says out ' 0  bytes staged by coll$' "all-gather at 1 MiB stages nothing"
says out ' [1-9][0-9]*  bytes copied by plans' "the caller's own block is on its own line"
for stage in registration reduce transfer control wait; do
	says out "^.* [0-9.]*  us $stage$" "what a call is spent on: $stage"
done
says out ' [0-9.]*  GB/s that a rank sends' "and the bandwidth of the communicator"

# ---- counters in files
mkdir "$tmp/prom"
WEFT_LINES=off WEFT_STATS=$tmp/prom WEFT_STATS_SECONDS=0.1 status 0 "WEFT_STATS" \
	"$weft" run -n 2 "$weft" perf allreduce --sizes 1M --iters 3
ok "a file of each rank is left" test "$(find "$tmp/prom" -name 'weft-[01].*.prom' | wc -l)" = 2
ok "and nothing that is half written" test -z "$(find "$tmp/prom" -name '*.new')"
cat "$tmp"/prom/weft-0.*.prom >"$tmp/counters"
for line in 'weft_calls_total{rank="0",collective="allreduce"} [1-9][0-9]*$' \
	'weft_stage_seconds_total{rank="0",collective="allreduce",stage="reduce"} [0-9.]*$' \
	'weft_communicator_busy_seconds_total{rank="0",communicator="0",size="2"} 0*[0-9.]*[1-9]' \
	'weft_peer_sent_bytes_total{rank="0",peer="1"} [1-9][0-9]*$'; do
	ok "it has ${line%%\{*}" grep -q "^$line" "$tmp/counters"
done
ok "each line is a comment or a sample" bash -c \
	"! grep -vE '^# (HELP|TYPE) weft_[a-z_]+ |^weft_[a-z_]+\{[a-z]+=\"[^\"]*\"(,[a-z]+=\"[^\"]*\")*\} [0-9.]+\$' '$tmp/counters'"
WEFT_STATS=$tmp/nowhere status 1 "a folder that is none" "$weft" perf barrier --iters 3
says err 'WEFT_STATS: .*nowhere: No such file' "is named"
WEFT_STATS=$tmp WEFT_STATS_SECONDS=often status 1 "no number" "$weft" perf barrier --iters 3
says err 'WEFT_STATS_SECONDS is "often"' "is named, too"

# ---- JSON
if command -v python3 >/dev/null; then
	status 0 "--json" "$weft" run -n 2 --no-prefix "$weft" perf all --json --stats \
		--sizes 8:1K --iters 3
	ok "is one document, complete" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == 1 and d["ranks"] == 2 and d["wrong"] == 0
assert [c["name"] for c in d["collectives"]] == ["barrier", "broadcast", "allgather",
	"allreduce", "reduce_scatter", "alltoall", "reduce", "gather", "scatter"]
rows = [r for c in d["collectives"] for r in c["results"]]
assert d["measurements"] == len(rows) == 41 and all(r["ok"] and r["calls"] == 3 for r in rows)
assert all("staged_bytes" in c["stats"] and c["stats"]["provider"] == {} for c in d["collectives"])
' "$tmp/out"
	WEFT_JOB=private status 0 "weft info --json" "$weft" info --json
	ok "is one document" python3 -c '
import json, sys
text = open(sys.argv[1]).read()
d = json.loads(text)
assert d["schema"] == 1 and d["provider"] and d["algorithms"] and d["host"]["cpus"] >= 1
assert d["variables"]["FI_PROVIDER"] == "tcp" and "private" not in text
r = d["reductions"]
assert "fp32" in r["types"] and "fp8_e4m3" in r["types"]
assert "sum" in r["operations"] and "bxor" in r["integer_operations"] and "bxor" not in r["operations"]
' "$tmp/out"
else
	skip 4 "no python3 to read JSON with (test_json checks the writer)"
fi

# ---- info
WEFT_JOB=private WEFT_GPU_LIB=none status 0 "weft info" "$weft" info
says out 'allreduce +ring ' "algorithms"
says out '^  tcp.* used unless another is named' "the provider that would be used"
says out 'weft is not among them. FI_PROVIDER leaves it out' "why weft would not be"
says out '^  FI_PROVIDER=tcp$' "variables"
says out '^  none: turned off' "why there is no GPU, where there is none"
ok "the secret is not shown" is_empty "$(grep private "$tmp/out")"
ok "the last line has the figures" \
	grep -qE '^[0-9]+ providers?, [0-9]+ algorithms, 14 types' <(tail -n 1 "$tmp/out")
FI_WEFT_AUTH_KEY=private-key-of-ours FI_LOG_LEVEL=debug status 0 "a key of doors" \
	"$weft" info
says out 'FI_WEFT_AUTH_KEY=.a secret' "is told to be set"
# The library of GPUs over the stand-in for the driver, which is built for tests.
if [ -e "$build/gpu/mock/.libs/libcuda.so.1" ]; then
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so \
		WEFT_MOCK=devices=3,cc=87 status 0 "weft info with GPUs" "$weft" info
	says out '^  0000:a2:00.0 .*Weft stand-in 2 .*compute 8.7, 16.0 GiB; DMA buffers' \
		"has each of them"
	says out '^    nics +dma-buf$' "how NICs reach its memory"
	says out '^    processes +ipc$' "and other processes"
	says out '^    collectives +mirrors: ' "and collectives"
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so \
		WEFT_MOCK=devices=1,dmabuf=0,vmm=0 status 0 "with less" "$weft" info
	says out '^    nics +staged: the driver makes no DMA buffers' "why not better"
	says out '^    processes +ipc: .*pieces.* are staged' "for processes as well"
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so \
		WEFT_MOCK=driver=11000 status 0 "and with a driver that is too old" "$weft" info
	says out '^  none: .*Install a newer driver' "what to do"
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so status 0 \
		"memory of GPUs" "$weft" run -n 2 "$weft" perf all --memory cuda --sizes 4:70000 \
		--iters 3 --stats
	says out '^.0. allreduce, fp32 sum, memory of GPUs' "is said"
	says out ' [1-9][0-9]*  bytes staged by coll$' "and copied from"
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so status 0 \
		"with counts" "$weft" run -n 2 "$weft" perf allv --memory cuda --sizes 4:5000 --iters 3
	LD_LIBRARY_PATH=$build/gpu/mock/.libs WEFT_GPU_LIB=$build/.libs/libweft-gpu.so status 0 \
		"in place" "$weft" run -n 2 "$weft" perf all --memory cuda --in-place --overlap \
		--breakdown --sizes 4:5000 --iters 3
else
	skip 15 "the stand-in for the GPU driver was not built"
fi
WEFT_GPU_LIB=none status 1 "memory of GPUs that are not there" "$weft" perf allreduce --memory cuda
says err '--memory cuda, but this process has no GPU: .*turned off' "says why there is none"
ok "and shown nowhere" is_empty "$(grep -h private-key "$tmp/out" "$tmp/err")"
FI_WEFT_EAGER_SIZE=lots FI_WEFT_CMA=0 FI_WEFT_CONNECT_TIMEOUT=0 FI_WEFT_CMB=1 FI_PROVDER=weft \
	WEFT_RNK=1 WEFT_TTY=1 status 0 "variables that are wrong" "$weft" info
if is_sanitized "$build/prov/libweft-fi.so"; then
	skip 3 "libfabric cannot load a module that was built with sanitizers"
else
	says out 'FI_WEFT_EAGER_SIZE=lots  <-- not accepted: 0 to 1048576 bytes; .* 8192$' "a value"
	says out 'FI_WEFT_CONNECT_TIMEOUT=0  <-- not accepted: 1 to ' "a number out of range"
	says out 'FI_WEFT_CMB=1  <-- not known' "a name"
fi
says out 'FI_PROVDER=weft  <-- not known' "one of libfabric"
says out 'WEFT_RNK=1  <-- not known' "one of Weft"
ok "and nothing else" test "$(grep -vE 'WEFT_(TOP|TEST)_' "$tmp/out" | grep -c '<--')" = \
	"$(grep -cE 'FI_WEFT_(EAG|CON|CMB)|FI_PROVDER|WEFT_RNK' "$tmp/out")"
WEFT_ALGO=allreduce=rung status 0 "an algorithm that there is not" "$weft" info
says out 'WEFT_ALGO=allreduce=rung  <-- .*no algorithm "rung" for allreduce' "is told"
WEFT_RANK=x WEFT_SIZE=2 status 0 "ranks that cannot meet" "$weft" info
says out 'ranks cannot meet by these: WEFT_RANK is "x"' "says why"
FI_PROVIDER='' status 1 "an empty FI_PROVIDER" "$weft" info
says out 'FI_PROVIDER is empty' "is told"
FI_PROVIDER=none_such status 1 "without any provider" "$weft" info
says out 'none: no libfabric provider' "says so"
status 2 "info with an argument" "$weft" info more
status 0 "info --help" "$weft" info --help

# ---- what is wrong
status 2 "an unknown algorithm" "$weft" run -n 2 "$weft" perf allreduce --algo fast
says err 'there are ring, recursive-doubling, halving-doubling, double-tree.*but no "fast"' "lists those there are"
ok "and only rank 0 says it" test "$(grep -c 'weft perf:' "$tmp/err")" = 1
status 2 "in place with counts" "$weft" perf allv --in-place
status 2 "an algorithm that nobody has" "$weft" perf all --algo fast
status 1 "a pair that is not supported" "$weft" perf allreduce --op band
says err 'band of fp32 is not supported.*sum, prod' "lists those there are"
FI_PROVIDER=none_such status 1 "an unknown provider" "$weft" perf barrier
says err 'none_such' "is named"
status 2 "an unknown operation" "$weft" perf sort
status 2 "no operation" "$weft" perf
status 2 "two operations" "$weft" perf barrier broadcast
status 2 "sizes in the wrong order" "$weft" perf all --sizes 8K:8
says err 'must begin with the smaller size' "says so"
status 2 "sizes that are none" "$weft" perf all --sizes 8Q
says err 'must be A:B or A, in bytes or with K, M or G' "says so"
status 2 "a size of nothing" "$weft" perf all --sizes 0:8
says err 'must begin above 0' "says so"
status 2 "too large a size" "$weft" perf all --sizes 8:2048G
says err 'must end at 1024G' "says so"
status 2 "half an element" "$weft" perf all --type fp64 --sizes 4:8
says err 'multiples of 8 bytes, an element of fp64' "says so"
status 2 "a reduction that nobody does" "$weft" perf allgather --op max
says err 'what reductions do: leave it out for "allgather"' "says so"
status 2 "sizes of nothing" "$weft" perf barrier --sizes 8
status 2 "memory of nothing" "$weft" perf barrier --memory cuda
status 2 "memory that is none" "$weft" perf all --memory disk
says err 'must be host or cuda, not .*disk' "says what there is"
status 2 "a type of nothing" "$weft" perf barrier --type fp32
status 2 "in place where there is one place" "$weft" perf broadcast --in-place
status 2 "a type that is none" "$weft" perf all --type fp31
says err 'must be int8, .* fp64, not "fp31"' "lists those there are"
status 2 "an operation that is none" "$weft" perf all --op sub
status 2 "too many calls" "$weft" perf all --iters 2001
status 2 "a budget that is none" "$weft" perf all --budget -1
status 2 "an unknown option" "$weft" perf all --frobnicate
ok "is told in one line" test "$(grep -c . "$tmp/err")" = 1
says err '^weft perf: there is no option "--frobnicate"; see' "which names command and option"
status 2 "an option without its value" "$weft" perf all --sizes
says err 'a value must follow the option "--sizes"' "says so"
status 0 "perf --help" "$weft" perf --help
status 0 "help perf" "$weft" help perf
says out '^usage: weft perf' "is the same"
status 0 "help" "$weft" help
status 2 "help for an unknown command" "$weft" help frobnicate
status 2 "an unknown command" "$weft" frobnicate

# ---- what cannot be written
if [ -c /dev/full ]; then
	full() { # NAME ARGUMENTS...
		timeout 60 "$weft" "${@:2}" >/dev/full 2>"$tmp/err"
		ok "$1 that cannot be written: status 1" test $? = 1
		says err 'write error: No space left on device' "says so"
	}
	full "a table" perf barrier --iters 3
	full "a document" perf barrier --iters 3 --json
	full "info" info
	full "help" perf --help
	full "the overview" --help
	full "the version" --version
else
	skip 12 "no /dev/full"
fi
timeout 60 "$weft" info >&- 2>"$tmp/err"
ok "standard output is closed: status 1" test $? = 1

# Who chose, and why.
explain() {
	timeout 60 "$weft" run -n 3 "$weft" perf allreduce --sizes 8:8 --iters 2 --explain "$@" \
		>"$tmp/why" 2>&1
}
ok "--explain runs" explain
ok "and says what the library goes by" \
	grep -qE 'ok  (short, and its ranks share memory|a short vector takes the fewest rounds)' "$tmp/why"
WEFT_LINES=off ok "without lines" explain
ok "it goes by messages" grep -q 'ok  a short vector takes the fewest rounds' "$tmp/why"
explain --algo ring
ok "or who named it" grep -q 'ok  --algo names it' "$tmp/why"

# What of a call overlaps with work, and what it is spent on: figures, not judged.
stages() {
	timeout 100 "$weft" run -n 2 "$weft" perf "$@" --iters 3 >"$tmp/stages" 2>&1
}
ok "--overlap runs" stages allreduce --sizes 8:64K --overlap
ok "and has a line for each size" test "$(grep -c 'overlap [0-9]* %: alone .* us, work .* us, together .* us; [0-9]* % were done' "$tmp/stages")" = 8
ok "--breakdown runs" stages alltoall --sizes 64:64K --breakdown
ok "and has a line for each size, too" test "$(grep -c ' call .* us, control .* us, issue .* us, wait .* us' "$tmp/stages")" = 12
ok "of which half are of doubled calls, without control messages" \
	test "$(grep -c 'doubled: call .*; 0.0 control messages a call' "$tmp/stages")" = 6
ok "both as a document" stages barrier --overlap --breakdown --json
ok "with figures of both" grep -q '"overlap_together_us"' "$tmp/stages"
ok "of each stage" grep -q '"control_us"' "$tmp/stages"

WEFT_ALGO=allreduce=ring explain
ok "in the environment, too" grep -q 'ok  WEFT_ALGO names it' "$tmp/why"

done_testing
