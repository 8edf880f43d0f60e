#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft run from outside: statuses, signals, output, what is left behind.
# The ranks expand what is in single quotes.
# shellcheck disable=SC2016
set -u
build=${WEFT_TOP_BUILDDIR:-.}
weft=$build/weft
dir=$(mktemp -d) || exit 99
# Not in a child that is ended before it is the launcher (tests/tap.sh).
trap '[ $BASHPID = $$ ] && rm -rf "$dir"' EXIT
number=0
failed=0
# Sleeps of this run and no other's.
export u=$$

ok() { # STATUS NAME
	number=$((number + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $number - $2"
	else
		failed=$((failed + 1))
		echo "not ok $number - $2"
		for f in out err; do
			tr -cd '[:print:]\n' <"$dir/$f" | cut -c 1-200 | head -5 | sed "s/^/# $f: /"
			echo
		done
	fi
}

# run STATUS NAME ARGUMENTS...: output in $dir/out and $dir/err
run() {
	local want=$1 name=$2 status
	shift 2
	timeout 60 "$weft" run "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ $status -eq "$want" ] || echo "# exit status $status, want $want"
	[ $status -eq "$want" ]
	ok $? "$name"
}

said() { # WORDS NAME: in stderr
	grep -q -- "$1" "$dir/err"
	ok $? "$2"
}

same() { # FILE FILE NAME
	cmp -s "$1" "$2"
	ok $? "$3"
}

gone() { # SECONDS-ARGUMENT-OF-SLEEP NAME: nobody sleeps so long any more
	for _ in $(seq 300); do
		pgrep -f "^sleep $1\$" >/dev/null || break
		sleep 0.1
	done
	! pgrep -f "^sleep $1\$" >/dev/null
	ok $? "$2"
}

# ---- what a rank sees
run 0 "three ranks" -n 3 sh -c 'echo $WEFT_RANK/$WEFT_SIZE $WEFT_LOCAL_RANK/$WEFT_LOCAL_SIZE ${WEFT_ROOT_FD:+fd} ${#WEFT_JOB}'
printf '[0] 0/3 0/3 fd 32\n[1] 1/3 1/3 32\n[2] 2/3 2/3 32\n' >"$dir/want"
sort "$dir/out" >"$dir/sorted"
same "$dir/sorted" "$dir/want" "variables and prefixes"
run 0 "ranks meet" -n 5 "$build/cli/tests/rank_boot"
[ "$(grep -c 'knows 5 of 5$' "$dir/out")" -eq 5 ]
ok $? "all of them know all of them"
echo input | timeout 20 "$weft" run -n 2 cat >"$dir/out" 2>"$dir/err"
[ "$(cat "$dir/out")" = "[0] input" ]
ok $? "rank 0 reads standard input, rank 1 nothing"

# ---- statuses
run 7 "exit status of a rank" -n 3 sh -c '[ $WEFT_RANK = 1 ] && exit 7; exec sleep 1001.$u'
said 'rank 1 .*status 7; stopping the other 2 ranks' "the rank is named"
gone "1001.$u" "the others are stopped"
run 137 "a rank is killed" -n 3 sh -c '[ $WEFT_RANK = 2 ] && kill -9 $$; exec sleep 1002.$u'
said 'rank 2 .*signal 9 (Killed)' "signal and rank are named"
gone "1002.$u" "the others are stopped"
run 137 "death in the middle of a job" -n 4 "$build/cli/tests/rank_boot" die
said 'weft run: rank 1 .*signal 9' "the one that died is blamed, not those that noticed"
run 143 "a rank ends itself by SIGTERM" -n 2 sh -c 'kill -TERM $$; sleep 5'
run 9 "those that ignore SIGTERM are killed" -n 2 sh -c '
	if [ $WEFT_RANK = 0 ]; then
		until [ -e "$1" ]; do sleep 0.05; done
		exit 9
	fi
	trap "" TERM
	echo >"$1"
	while :; do sleep 0.2; done' sh "$dir/ignores"
run 127 "no such program" -n 2 "$dir/none"
said 'No such file' "and why"
echo text >"$dir/text"
run 126 "a file that is no program" -n 2 "$dir/text"

# ---- time, signals
# Rank 1 must have come and gone by then: on a machine where that takes longer, once more.
# By a signal that no status of weft run stands for, should it not keep its time.
for limit in 4 20 50; do
	timeout -s KILL 100 "$weft" run -n 3 --timeout $limit sh -c '[ $WEFT_RANK = 1 ] || exec sleep 1003.$u' \
		>"$dir/out" 2>"$dir/err"
	status=$?
	! grep -q 'ranks 0-2 still running' "$dir/err" || continue
	break
done
[ "$status" -eq 124 ]
ok $? "--timeout"
said 'ranks 0, 2 still running' "names the ranks that still ran"
gone "1003.$u" "and stops them"
run 124 "--timeout against ranks that ignore SIGTERM" -n 1 --timeout 0.3 sh -c 'trap "" TERM; while :; do sleep 0.2; done'
for sig in TERM INT; do
	# A shell's background jobs ignore SIGINT, and what a shell finds ignored it can't
	# trap: so all signals are as at a login, however this script was started.
	: >"$dir/out" # what the last one said shall not be taken for its
	env --default-signal "$weft" run -n 2 --timeout 120 sh -c 'trap "echo got; exit 0" TERM INT; echo ready; while :; do sleep 0.1; done' >"$dir/out" 2>"$dir/err" &
	pid=$!
	for _ in $(seq 600); do
		[ "$(grep -c ready "$dir/out")" -eq 2 ] && break
		sleep 0.1
	done
	kill -"$sig" "$pid"
	wait "$pid"
	status=$?
	want=$([ $sig = TERM ] && echo 143 || echo 130)
	[ $status -eq "$want" ] && [ "$(grep -c got "$dir/out")" -eq 2 ]
	ok $? "SIG$sig is passed on; exit status $want"
done
"$weft" run -n 2 sh -c 'sleep 1004.$u & exec sleep 1005.$u' >"$dir/out" 2>"$dir/err" &
pid=$!
for _ in $(seq 600); do
	[ "$(pgrep -c -f "^sleep 100[45].$u\$")" -eq 4 ] && break
	sleep 0.1
done
disown "$pid" # or the shell reports its death
kill -9 "$pid"
gone "100[45].$u" "the launcher is killed: ranks and their children die"
run 0 "what a rank leaves running" -n 2 sh -c 'sleep 1006.$u & exit 0'
gone "1006.$u" "is killed"

# Libraries of libfabric install handlers of their own while the program is loaded.
good=0
for delay in 0.005 0.01 0.02 0.03 0.05; do
	"$weft" run -n 1 sleep 1007.$u >"$dir/out" 2>"$dir/err" &
	pid=$!
	sleep $delay
	kill -TERM "$pid"
	wait "$pid" 2>/dev/null
	[ $? -eq 143 ] && good=$((good + 1))
done
[ $good -eq 5 ]
ok $? "SIGTERM while it is loaded, or soon after"
# Of a rank: until the launcher has said so.
shown='until grep -q "$1" "$2"; do sleep 0.05; done'
run 0 "a rank that ends long before the others" -n 2 sh -c '[ $WEFT_RANK = 1 ] || '"$shown" \
	sh 'while rank 0 still runs' "$dir/err"
said 'rank 1 exited with status 0 while rank 0 still runs' "is told"
# Rank 0 fails when rank 1 is no more, not even as what nobody has waited for.
run 3 "a failure after ranks that ended well" -n 2 sh -c '
	[ $WEFT_RANK = 0 ] || { echo $$ >"$1.new" && mv "$1.new" "$1"; exit; }
	until [ -e "$1" ]; do sleep 0.05; done
	while kill -0 "$(cat "$1")" 2>/dev/null; do sleep 0.05; done
	exit 3' sh "$dir/gone"
said 'status 3; rank 1 had exited with status 0$' "names them"

# ---- output
if [ -c /dev/full ]; then
	timeout 20 "$weft" run -n 2 yes >/dev/full 2>"$dir/err"
	[ $? -eq 1 ]
	ok $? "output that cannot be written ends the job: status 1"
	said 'write error: standard output: No space left' "and is told"
fi
run 0 "unfinished and empty lines" -n 1 printf 'a\n\nb'
printf '[0] a\n[0] \n[0] b\n' >"$dir/want"
same "$dir/out" "$dir/want" "each line is prefixed, the last is ended"
run 0 "stdout and stderr" -n 1 sh -c 'echo out; echo err >&2'
printf '[0] err\n' >"$dir/want"
same "$dir/err" "$dir/want" "do not mix"
# Whichever rank is the first to end its own.
run 0 "a line in two halves" -n 2 sh -c 'printf "a$WEFT_RANK"; sleep 0.3; echo b'
printf '[0] a0b\n[1] a1b\n' >"$dir/want"
sort "$dir/out" >"$dir/sorted"
same "$dir/sorted" "$dir/want" "is one line"
head -c 3000000 /dev/urandom | tr -d '\n' >"$dir/data"
run 0 "one long line of any bytes" -n 1 cat "$dir/data"
{
	printf '[0] '
	cat "$dir/data"
	echo
} >"$dir/want"
same "$dir/out" "$dir/want" "passes unharmed"
head -c 300000 /dev/urandom >"$dir/data"
run 0 "--no-prefix" -n 1 --no-prefix cat "$dir/data"
same "$dir/out" "$dir/data" "passes bytes as they are"
run 0 "two ranks with long lines" -n 2 sh -c 'for i in 1 2 3; do head -c 400000 /dev/zero | tr "\0" $WEFT_RANK; echo; done'
[ "$(grep -c -v -E '^\[(0|1)\] (0+|1+)$' "$dir/out")" -eq 0 ] &&
	[ "$(tr -d -c '01' <"$dir/out" | wc -c)" -ge 2400000 ]
ok $? "never mix within a line"
"$weft" run -n 2 seq 100000 2>"$dir/err" | {
	sleep 1
	wc -l
} >"$dir/out"
[ "$(cat "$dir/out")" = 200000 ]
ok $? "a slow reader loses nothing"
timeout 20 "$weft" run -n 1 yes 2>"$dir/err" | head -1 >"$dir/out"
status=${PIPESTATUS[0]}
[ "$status" -eq 141 ]
ok $? "a reader that leaves ends the job"

# The rank ends when the other has a session of its own: before, it is killed with the rank.
# Its duration is one that no other run of this test has.
escape='setsid sh -c "echo >$1; exec sleep $2" &
	until [ -e "$1" ]; do sleep 0.05; done'
run 0 "somebody who escaped and keeps the pipe" -n 1 sh -c "$escape" sh "$dir/escaped" \
	$((100000 + $$))
for i in {1..100}; do
	pkill -f "^sleep $((100000 + $$))\$" && break
	sleep 0.1
done
[ "$i" -lt 100 ]
ok $? "is not waited for"

# ---- binding
cpus=$(nproc)
run 0 "as many ranks as CPUs" -n "$cpus" nproc
[ "$(grep -c ' 1$' "$dir/out")" -eq "$cpus" ] || [ "$cpus" -gt 2 ]
ok $? "are bound"
run 0 "more ranks than CPUs" -n $((cpus + 1)) nproc
[ "$(grep -c " $cpus\$" "$dir/out")" -eq $((cpus + 1)) ]
ok $? "are not"
run 0 "--bind none" -n 1 --bind none nproc
[ "$(cat "$dir/out")" = "[0] $cpus" ]
ok $? "does not bind"
run 0 "--bind core" -n $((cpus + 1)) --bind core nproc
[ "$cpus" -eq 1 ] || ! grep -q " $cpus\$" "$dir/out"
ok $? "always binds"

# Where /sys is missing hwloc would complain into what the ranks write.
no_sys() {
	unshare -rm sh -c 'mount -t tmpfs none /sys && exec "$@"' sh "$@"
}
if no_sys true 2>/dev/null; then
	no_sys "$weft" run -n 1 --bind core env >"$dir/out" 2>"$dir/err"
	ok $? "--bind without /sys"
	[ ! -s "$dir/err" ] && ! grep -q HWLOC_HIDE "$dir/out"
	ok $? "says nothing, and ranks find their environment as it was"
else
	for name in "--bind without /sys" "says nothing"; do
		number=$((number + 1))
		echo "ok $number # SKIP $name: no namespaces here"
	done
fi

# ---- usage
run 0 "--help" --help
run 2 "no number of ranks" true
run 2 "no program" -n 2
run 2 "no ranks" -n 0 true
run 2 "too many ranks" -n 4097 true
run 2 "a number that is none" -n 2x true
said '2x' "is repeated"
run 2 "an unknown option" -n 2 --what true
[ "$(grep -c . "$dir/err")" -eq 1 ] && grep -q '^weft run: .*"--what"' "$dir/err"
ok $? "is told in one line"
run 2 "a time that is none" -n 2 --timeout never true
run 2 "a binding that is none" -n 2 --bind socket true

[ -z "$(pgrep -P $$ -f "$weft")" ]
ok $? "no process is left"
echo "1..$number"
[ "$failed" -eq 0 ]
