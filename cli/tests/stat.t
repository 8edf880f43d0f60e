#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft stat sees what running ranks do, whatever they do meanwhile, and stat hang names who holds
# them and who is missing.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
export FI_PROVIDER=tcp
# By messages, which have peers.
WEFT_LINES=off "$weft" run -n 3 --no-prefix --timeout 300 "$build/cli/tests/busy_rank" >"$tmp/perf" 2>&1 &
job=$!
# shellcheck disable=SC2064 # this job, now
trap "[ \$BASHPID = $$ ] && { kill -9 $job 2>/dev/null; rm -rf '$tmp'; }" EXIT

# soon COMMAND...: until it succeeds.
soon() {
	local i

	for ((i = 0; i < 600; i++)); do
		"$@" && return 0
		kill -0 "$job" 2>/dev/null || break
		sleep 0.1
	done
	cat "$tmp/perf" "$tmp/stat" "$tmp/err"
	return 1
}
stat_job() {
	"$weft" stat --job "$job" >"$tmp/stat" 2>"$tmp/err"
}
all_work() {
	stat_job && [ "$(grep -c '^  calls that ended: .*allreduce [1-9]' "$tmp/stat")" = 3 ]
}
ok "three ranks are seen at work" soon all_work
ok "in order, each with its process" test \
	"$(sed -n 's/^rank \([0-9]\) of 3 on .*, process [0-9]* (.*), provider tcp.*, open for .*/\1/p' \
		"$tmp/stat" | tr -d '\n')" = 012
ok "with the memory that they have" test "$(grep -c '^  memory: [1-9].* MiB resident' "$tmp/stat")" = 3
ok "with peers, and bytes to them" grep -qE '^ +[012] +[1-9][0-9]+ ' "$tmp/stat"
ok "of another provider it is said that nothing is counted" grep -q 'its provider counts nothing' \
	"$tmp/stat"
pid=$(sed -n 's/^rank 1 of 3.* process \([0-9]*\) .*/\1/p' "$tmp/stat")
# shellcheck disable=SC2317 # called by soon
in_flight() {
	stat_job && grep -qE 'in flight: call [0-9]+ of communicator 0, (allreduce|barrier) of [0-9]+, [0-9]+ of [0-9]+ steps' "$tmp/stat"
}
ok "collectives in flight are seen" soon in_flight
one() {
	"$weft" stat "$pid" >"$tmp/stat" 2>"$tmp/err" && [ "$(grep -c '^rank ' "$tmp/stat")" = 1 ] &&
		grep -q '^rank 1 of 3' "$tmp/stat"
}
ok "a process alone" one
mine() {
	"$weft" stat >"$tmp/all" 2>"$tmp/err" && grep -q ", process $pid " "$tmp/all"
}
ok "without names: all of this user, these among them" mine
twice() {
	"$weft" stat --watch 0.2 --count 2 "$pid" >"$tmp/stat" 2>"$tmp/err" &&
		[ "$(grep -c '^rank 1' "$tmp/stat")" = 2 ]
}
ok "--watch looks again" twice
ok "then there are rates" grep -qE '^ +[012] +[0-9]+ +[0-9]+ +[0-9]+\.[0-9]+ +[0-9]+\.[0-9]+ ' "$tmp/stat"
fits() {
	"$weft" stat --job "$job" --json >"$tmp/json" 2>"$tmp/err" &&
		"$build/cli/tests/json_schema" "$top/cli/schema/stat.schema.json" "$tmp/json" &&
		[ "$(grep -c '"rank": [012],$' "$tmp/json")" -ge 3 ]
}
ok "--json is as its schema says" fits
good() {
	local rc

	"$weft" stat hang --stuck 100 --job "$job" >"$tmp/stat" 2>"$tmp/err"
	rc=$?
	# That a rank or a link is slow is of this moment, and may be so.
	[ "$rc" = 0 ] || grep -q '^verdict: slow ' "$tmp/stat"
}
ok "nothing hangs" good

kill -STOP "$pid"
stands() {
	"$weft" stat hang --job "$job" >"$tmp/stat" 2>"$tmp/err"
	[ $? = 3 ] && grep -q '^first to stop: ' "$tmp/stat" &&
		grep -q '^verdict: .*: rank 1$' "$tmp/stat"
}
ok "a rank that is stopped: hang names it" soon stands
ok "and the call that stopped" grep -q '^first to stop: call [0-9]* of communicator 0: ' "$tmp/stat"
stopped() {
	"$weft" stat "$pid" >"$tmp/stat" 2>"$tmp/err" && grep -q "process $pid (stopped)" "$tmp/stat"
}
ok "it is seen although it does not answer" stopped
missing() {
	"$weft" stat hang "$pid" >"$tmp/stat" 2>"$tmp/err"
	grep -q '^no dump of rank 0, 2: ' "$tmp/stat"
}
ok "hang names who is missing" missing
missing_json() {
	"$weft" stat hang "$pid" --json >"$tmp/json" 2>"$tmp/err"
	[ "$(grep -c '"first": [02],$' "$tmp/json")" = 2 ]
}
ok "in JSON, too" missing_json
kill -CONT "$pid"
kill "$job"
wait "$job" 2>/dev/null

gone() {
	! "$weft" stat "$pid" >"$tmp/stat" 2>"$tmp/err" && grep -q "^weft stat: process $pid: " "$tmp/err"
}
ok "one that has ended is said" gone
none() {
	! "$weft" stat $$ >"$tmp/stat" 2>"$tmp/err" && grep -q "process $$: it has no flight recorder" "$tmp/err"
}
ok "one that has no recorder is said" none
# wrong TEXT ARGUMENT...: status 2.
wrong() {
	local text=$1 rc

	shift
	"$weft" stat "$@" >/dev/null 2>"$tmp/err"
	rc=$?
	[ "$rc" = 2 ] && grep -qF -- "$text" "$tmp/err"
}
ok "seconds that are none" wrong '--watch wants seconds' --watch soon
ok "a count that is none" wrong '--count wants a number' --watch 1 --count 0
ok "a count of what is looked at once" wrong '--count is for --watch' --count 3
ok "what is for hang" wrong '--stuck is for hang' --stuck 1
ok "what is not" wrong 'not for hang' hang --watch 1

done_testing
