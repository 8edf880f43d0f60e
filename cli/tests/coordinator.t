#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft coordinator: a job from its first step to its end over two lives of it, one that is
# killed, what it says of itself, and wrong usage.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

weft=$build/weft
member=$build/cli/tests/ft_member
# At most 64 characters, wherever the scratch folder is.
export WEFT_JOB="secret of ${tmp##*/}"
trap '[ $BASHPID = $$ ] && { kill -9 $coord 2>/dev/null; wait; rm -rf "$tmp"; }' EXIT

# start OPTION...: in the background; its address in $address.
start() {
	: >"$tmp/out"
	"$weft" coordinator --state "$tmp/state" --size 2 "$@" \
		>"$tmp/out" 2>"$tmp/err" &
	coord=$!
	for _ in {1..3000}; do
		read -r address <"$tmp/out" && return
		kill -0 $coord 2>/dev/null || break
		sleep 0.02
	done
	diag "$(cat "$tmp/err")"
	bail "no coordinator came up"
}

# has FILE TEXT: waits until a line of the file has it.
has() {
	for _ in {1..3000}; do
		grep -q -- "$2" "$1" && return
		sleep 0.02
	done
	cat "$1"
	return 1
}

# says STATUS COMMAND...: the status it ends with.
says() {
	local want=$1 got

	shift
	timeout 100 "$@" >"$tmp/said" 2>&1
	got=$?
	[ $got = "$want" ] || {
		echo "status $got, not $want"
		cat "$tmp/said"
		return 1
	}
}

start --listen 127.0.0.1:0 --first --silence 20
"$member" "$address" 3 >"$tmp/m1" 2>&1 &
m1=$!
# It has joined, and waits for another: what it is told of is in the line of the state.
kill -USR1 $coord
ok "it prints its address, and where the job stands" has "$tmp/out" '^state=form .* step=0 '
"$member" "$address" 3 >"$tmp/m2" 2>&1 &
m2=$!
wait $m1
ok "two members run three steps" grep -qx 'step 3 of 2' "$tmp/m1"
ok "and leave" grep -q '^out: left' "$tmp/m1"
wait $m2
ok "both" grep -q '^out: left' "$tmp/m2"
wait $coord
ok "it ends when all have left" test $? = 0
ok "and says where the job stood" grep -q '^state=done .* step=3 ' "$tmp/out"
ok "what happened is on standard error" grep -q 'epoch .*: 2 members$' "$tmp/err"
ok "it says that it is not the first where there was one" \
	says 1 "$weft" coordinator --listen 127.0.0.1:0 --state "$tmp/state" --size 2 --first
ok "and names the file" grep -q "$tmp/state is there" "$tmp/said"

# A second job, whose coordinator is killed and ended by a signal.
rm "$tmp/state"
echo "another secret" >"$tmp/secret"
export WEFT_JOB="another secret"
start --listen 127.0.0.1:0 --first --job-file "$tmp/secret" --silence 20
"$member" "$address" 1000000 >"$tmp/m1" 2>&1 &
m1=$!
"$member" "$address" 1000000 >"$tmp/m2" 2>&1 &
m2=$!
ok "steps of another job" has "$tmp/m1" '^step 5 of 2'
kill -9 $coord
wait $coord 2>/dev/null
counted=$(grep -c '^step' "$tmp/m1")
start --listen "$address" --job-file "$tmp/secret" --silence 20
ok "killed and started again it goes on" has "$tmp/m1" "^step $((counted + 10)) of 2"
says 1 env WEFT_JOB=wrong "$weft" coordinator --listen 127.0.0.1:0 --state "$tmp/state" \
	--size 2
ok "the file is locked while it runs" grep -q 'belongs to a coordinator that runs' "$tmp/said"
kill -TERM $coord
wait $coord
ok "SIGTERM ends it" test $? = 0
kill -9 $m1 $m2
wait $m1 $m2 2>/dev/null
says 1 env WEFT_JOB=wrong "$weft" coordinator --listen 127.0.0.1:0 --state "$tmp/state" \
	--size 2
ok "another job's file is refused" grep -q 'of this job' "$tmp/said"

wrong() {
	ok "$1" says 2 "$weft" coordinator "${@:3}"
	ok "  which is said" grep -qe "$2" "$tmp/said"
}
wrong "no address" "--listen is missing" --state f --size 2
wrong "no file" "--state is missing" --listen h:1 --size 2
wrong "no size" "--size is missing" --listen h:1 --state f
wrong "no members" '--size must be 1 to 4096, not "0"' --listen h:1 --state f --size 0
wrong "no silence" '--silence must be seconds, not "x"' --silence x
wrong "an argument" 'no argument is wanted: "x"' x
: >"$tmp/secret"
wrong "an empty secret" "a secret of 1 to 64" --listen h:1 --state f --size 1 \
	--job-file "$tmp/secret"
unset WEFT_JOB
wrong "no secret" "WEFT_JOB has 0 characters" --listen h:1 --state f --size 1
export WEFT_JOB=x
ok "no port" says 1 "$weft" coordinator --listen here --state "$tmp/f" --size 1
ok "  which is said" grep -q 'HOST:PORT' "$tmp/said"
ok "and leaves no file" test ! -e "$tmp/f"

done_testing
