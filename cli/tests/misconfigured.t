#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What people set wrong: the first line that the command prints names the cause and the cure.
# (What a host has wrong is in doctor.t.)
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
unset FI_PROVIDER WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_JOB WEFT_TUNE WEFT_ALGO WEFT_LINES WEFT_GPU_LIB
mkdir "$tmp/folder"
printf '{"x' >"$tmp/bad.json"
printf 'x y z\n' >"$tmp/bad.map"
: >"$tmp/plain"
chmod 644 "$tmp/plain"
{
	printf WEFTTRC1
	head -c 400 /dev/zero
} >"$tmp/old.trace"

# seeded WHAT CAUSE CURE COMMAND...: the command fails, and says both in its first line.
seeded() {
	local what=$1

	ok "$what" names "${@:2}"
}
names() {
	local cause=$1 cure=$2 rc line

	shift 2
	(cd "$tmp" && timeout 120 env "$@") >"$tmp/out" 2>"$tmp/err" </dev/null
	rc=$?
	line=$(head -n 1 "$tmp/err")
	printf '%s\n' "status $rc" "$line" "wanted: $cause" "and: $cure"
	[ "$rc" != 0 ] && [ "$rc" != 124 ] && [[ $line == *"$cause"* && $line == *"$cure"* ]]
}
perf=("$weft" perf barrier --iters 2)
ranks() {
	printf '%s\n' WEFT_RANK="$1" WEFT_SIZE="$2" WEFT_ROOT="$3" WEFT_JOB=j FI_PROVIDER=tcp
}

# ---- how ranks find each other
seeded "a part of the launcher's variables" "WEFT_SIZE is not set" "weft run" WEFT_RANK=0 "${perf[@]}"
mapfile -t vars < <(ranks x 2 127.0.0.1:9999)
seeded "a rank that is no number" 'WEFT_RANK is "x"' "from 0 to 1" "${vars[@]}" "${perf[@]}"
mapfile -t vars < <(ranks 7 2 127.0.0.1:9999)
seeded "a rank that there isn't" 'WEFT_RANK is "7"' "from 0 to 1" "${vars[@]}" "${perf[@]}"
mapfile -t vars < <(ranks 0 2 127.0.0.1)
seeded "no port" 'WEFT_ROOT is "127.0.0.1"' "HOST:PORT" "${vars[@]}" "${perf[@]}"
mapfile -t vars < <(ranks 0 2 192.0.2.1:9999)
seeded "rank 0 on another host than WEFT_ROOT says" "cannot listen at 192.0.2.1 port 9999" \
	"must be an address of this host and a free port" "${vars[@]}" "${perf[@]}"
mapfile -t vars < <(ranks 0 2 127.0.0.1:9999)
seeded "a listening socket that was not passed on" "WEFT_ROOT_FD is 77" "pass it on" \
	"${vars[@]}" WEFT_ROOT_FD=77 "${perf[@]}"
# shellcheck disable=SC2016 # the ranks' shell
seeded "ranks with different sizes" "rank 1 was started with WEFT_SIZE 3, rank 0 with 2" \
	"must be the same in every process" FI_PROVIDER=tcp "$weft" run -n 2 --no-prefix \
	bash -c '[ $WEFT_RANK = 0 ] || export WEFT_SIZE=3; exec "$@"' _ "${perf[@]}"
# shellcheck disable=SC2016 # as above
seeded "ranks with different variables" "has WEFT_NODES=" \
	"set it to the same on all ranks" FI_PROVIDER=tcp "$weft" run -n 2 --no-prefix \
	bash -c '[ $WEFT_RANK = 0 ] || export WEFT_NODES=2; exec "$@"' _ "${perf[@]}"

# ---- providers
# Those that there are a second copy of libfabric is asked for; it is not to load ours, which in a
# build with sanitizers speaks up about that.
other=(FI_PROVIDER=tpc FI_PROVIDER_PATH="$tmp")
seeded "a provider whose name is wrong" "no libfabric provider for tpc" "Set FI_PROVIDER to one of them" \
	"${other[@]}" "${perf[@]}"
seeded "the provider's folder is not named" "no libfabric provider for weft" "weft info" \
	FI_PROVIDER=weft FI_PROVIDER_PATH="$tmp" "${perf[@]}"
# What was open before would take a part of the limit, and it would end elsewhere.
# shellcheck disable=SC2016 # as the inner shell reads it
seeded "a file limit that is too low" "8 files may be open" "ulimit -n 65536" FI_PROVIDER=tcp \
	bash -c 'for n in {3..250}; do eval "exec $n>&-"; done; ulimit -n 8; exec "$@"' _ "${perf[@]}"
seeded "a GPU library that is not there" "$tmp/none.so" "use --memory host" FI_PROVIDER=tcp \
	WEFT_GPU_LIB="$tmp/none.so" "$weft" perf allreduce --sizes 8 --iters 2 --memory cuda

# ---- values of variables
seeded "an algorithm for no collective" 'WEFT_ALGO: "broadcast" is not COLLECTIVE=ALGORITHM' \
	"like allreduce=ring" FI_PROVIDER=tcp WEFT_ALGO=broadcast "${perf[@]}"
seeded "an algorithm that there isn't" 'no algorithm "fast" for allreduce' "those there are: ring" \
	FI_PROVIDER=tcp WEFT_ALGO=allreduce=fast "${perf[@]}"
seeded "a word that is none of them" 'WEFT_LINES is "maybe"' "it must be auto, on, short or off" \
	FI_PROVIDER=tcp WEFT_LINES=maybe "${perf[@]}"
seeded "who goes on with calls" 'WEFT_PROGRESS is "magic"' "it must be caller or thread" \
	FI_PROVIDER=tcp WEFT_PROGRESS=magic "${perf[@]}"
seeded "a processor that there isn't" 'processors "9999"' "numbers below 1024" FI_PROVIDER=tcp \
	WEFT_PROGRESS=thread WEFT_PROGRESS_CPUS=9999 "${perf[@]}"
seeded "nodes that are no number" 'WEFT_NODES is "x"' "1 to 1048576" FI_PROVIDER=tcp WEFT_NODES=x \
	"${perf[@]}"
seeded "a time that is none" 'WEFT_STATS_SECONDS is "0"' "0.1 to 86400" FI_PROVIDER=tcp \
	WEFT_STATS="$tmp" WEFT_STATS_SECONDS=0 "${perf[@]}"

# ---- files
seeded "a table that is not there" "WEFT_TUNE: $tmp/none: No such file" "weft tune wrote" \
	FI_PROVIDER=tcp WEFT_TUNE="$tmp/none" "${perf[@]}"
seeded "a table that is a folder" "WEFT_TUNE: $tmp/folder: it can't be read" "weft tune wrote" \
	FI_PROVIDER=tcp WEFT_TUNE="$tmp/folder" "${perf[@]}"
seeded "a table that is damaged" "bad.json, line 1" "weft tune writes such files" FI_PROVIDER=tcp \
	WEFT_TUNE=bad.json "${perf[@]}"
seeded "a folder of dumps that is not there" "WEFT_TRACE: $tmp/none: No such file" "name a folder" \
	FI_PROVIDER=tcp WEFT_TRACE="$tmp/none" "${perf[@]}"
seeded "a folder of counters that is not there" "WEFT_STATS: $tmp/none: No such file" "name a folder" \
	FI_PROVIDER=tcp WEFT_STATS="$tmp/none" "${perf[@]}"
seeded "a map that can't be read" "$tmp/none: No such file" "name a fabric map" "$weft" sim barrier \
	--ranks 4 --fabric "$tmp/none"
seeded "a map that is none" 'bad.map:1: "x"' 'the first line of a fabric map is "weft-fabric 1"' \
	"$weft" sim barrier --ranks 4 --fabric bad.map
seeded "a dump of another version" "another version" "the weft command of the version that wrote it" \
	"$weft" trace dump old.trace
seeded "no place for a table" "--out $tmp/none/x: No such file" "in a folder that can be written to" \
	FI_PROVIDER=tcp "$weft" tune barrier --out "$tmp/none/x"

# ---- starting
seeded "a program that is not there" "cannot start rank 0 of ./nosuch" "give its path" "$weft" run -n 2 \
	./nosuch
seeded "a program that may not be run" "cannot start rank 0 of ./plain" "chmod +x" "$weft" run -n 2 ./plain
seeded "a coordinator without a secret" "WEFT_JOB has 0 characters" "--job-file" "$weft" coordinator \
	--listen 127.0.0.1:0 --state s --size 2
seeded "a coordinator of another host" "can't listen at 192.0.2.1:99" "an address of this host" WEFT_JOB=j \
	"$weft" coordinator --listen 192.0.2.1:99 --state s --size 2 --first
seeded "a coordinator without a place" "$tmp/none/s.lock: No such file" "name a state file in a folder" \
	WEFT_JOB=j "$weft" coordinator --listen 127.0.0.1:0 --state "$tmp/none/s" --size 2 --first
seeded "a command that has another word" 'there is no command "stats"' 'those there are' "$weft" stats

# What is said belongs to the command that was run.
seeded "whoever speaks is named" "weft tune: " "weft tune: " "${other[@]}" "$weft" tune barrier
seeded "also of ranks" "weft doctor: " "weft doctor: " "${other[@]}" "$weft" run -n 2 --no-prefix \
	"$weft" doctor

# A wrong variable of the provider, which a program that runs on does not say, doctor does.
# told NAME VALUE: weft doctor names it and what to do, below each other.
told() {
	env "$1=$2" "$weft" doctor >"$tmp/out" 2>"$tmp/err"
	grep -A1 -F -- "$1" "$tmp/out" | tee "$tmp/lines"
	grep -qE '^(WARN|FAIL)' "$tmp/lines" && grep -qE '^ +' "$tmp/lines"
}
ok "a name that nobody reads" told WEFT_ALGORITHM ring
ok "a wire that there isn't" told FI_WEFT_WIRE fast
ok "a size that is none" told FI_WEFT_EAGER_SIZE x

done_testing
