#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/netns/run: two namespaces and nothing left.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../../tests/tap.sh" || exit 99

run=$top/fabtests/netns/run

status() {
	local want=$1 got

	shift
	"$@" >"$tmp/out" 2>&1
	got=$?
	[ "$got" = "$want" ] || { diag "exit status $got, wanted $want" && diag "$(cat "$tmp/out")" && return 1; }
}

ok "no command is wrong usage" status 2 "$run"
ok "an MTU of 100 too" status 2 "$run" --mtu 100 true
ok "an MTU that is no number" status 2 "$run" --mtu x true
ok "a loss of 100" status 2 "$run" --loss 100 true
ok "a rate of 0.5" status 2 "$run" --rate 0.5 true
ok "an option that isn't one" status 2 "$run" --gain 1 true
ok "--help is none" status 0 "$run" --help
mkdir "$tmp/none"
for tool in bash dirname id; do
	ln -s "$(command -v $tool)" "$tmp/none/$tool"
done
ok "without the tools nothing runs" status 77 env PATH="$tmp/none" "$run" touch "$tmp/ran"
ok "which is said" grep -q 'not installed' "$tmp/out"
ok "really" test ! -e "$tmp/ran"

"$run" true >"$tmp/out" 2>&1
if [ $? = 77 ]; then
	skip 1 "$(tail -n 1 "$tmp/out")"
	done_testing
	exit
fi

# The words are for the bash inside.
# shellcheck disable=SC2016
ends='on b ip -o addr show dev weft1; ip -o addr show dev weft0; ip -o link show dev weft0;
	on b ip -o link show dev weft1'
"$run" --mtu 4000 bash -c "$ends" >"$tmp/ends" 2>&1
ok "a has its address" grep -q 'weft0 .*10\.99\.0\.1/24' "$tmp/ends"
ok "b has its own" grep -q 'weft1 .*10\.99\.0\.2/24' "$tmp/ends"
ok "both have the MTU" test "$(grep -c 'mtu 4000' "$tmp/ends")" = 2
ok "the command's exit status comes out" status 7 "$run" bash -c 'exit 7'
ok "of b too" status 9 "$run" on b bash -c 'exit 9'
ok "on alone is wrong usage" status 2 "$run" on

if command -v nft >/dev/null; then
	kept='ip -d link show dev weft0; on b ip -d link show dev weft1'
	"$run" --loss 1 bash -c "$kept" >"$tmp/kept" 2>&1
	ok "what may be lost is one packet, at both ends" \
		test "$(grep -c 'gso_max_segs 1 ' "$tmp/kept")" = 2
	"$run" --loss 1 --batches bash -c "$kept" >"$tmp/kept" 2>&1
	ok "or a batch" test "$(grep -c 'gso_max_segs [0-9][0-9]' "$tmp/kept")" = 2
else
	skip 2 "nft is not installed"
fi

# More than the cable holds, in either direction, until it says that some was dropped.
cat >"$tmp/fill" <<'END'
for ((round = 0; round < 600; round++)); do
	for i in {1..300}; do
		printf '%1400d' 0 >"/dev/udp/$1/9"
	done 2>/dev/null
	tc -s qdisc show dev "$2" | grep -q 'dropped [1-9]' && break
done
tc -s qdisc show dev "$2"
END
timeout 300 "$run" --rate 1 bash -c \
	"bash '$tmp/fill' 10.99.0.2 weft0; on b bash '$tmp/fill' 10.99.0.1 weft1" \
	>"$tmp/narrow" 2>&1
if grep -q 'has no tbf' "$tmp/narrow"; then
	skip 2 "$(tail -n 1 "$tmp/narrow")"
else
	ok "a narrow cable is so at both ends" \
		test "$(grep -c 'qdisc tbf .* rate 1Mbit' "$tmp/narrow")" = 2 ||
		diag "$(cat "$tmp/narrow")"
	ok "and drops what it can't hold" \
		test "$(grep -c 'dropped [1-9]' "$tmp/narrow")" = 2 || diag "$(cat "$tmp/narrow")"
fi

# Nobody listens there: only whoever was reached can refuse.
# shellcheck disable=SC2016
meet='on b bash -c "exec 3<>/dev/tcp/10.99.0.1/9" 2>&1 | grep "Connection refused" &&
	(exec 3<>/dev/tcp/10.99.0.2/9) 2>&1 | grep "Connection refused"'
ok "they reach each other" status 0 timeout 120 "$run" bash -c "$meet"

# left SIGNAL [-]: to the run, or (as timeout and a terminal do) to its group. The lock is held by what runs in either namespace.
left() {
	local pid i

	rm -f "$tmp/held"
	: >"$tmp/lock"
	# shellcheck disable=SC2016
	setsid "$run" bash -c 'exec 9<"$0"; flock -s 9; on b sleep 1000 & : >"$1"; sleep 1000' \
		"$tmp/lock" "$tmp/held" >/dev/null 2>&1 &
	pid=$!
	for ((i = 0; i < 1200; i++)); do
		[ ! -e "$tmp/held" ] || break
		sleep 0.05
	done
	ok "it runs, and has the lock" status 1 flock -n "$tmp/lock" true
	kill "-$1" -- "${2-}$pid"
	{ wait $pid; } 2>/dev/null
	ok "after kill -$1 nothing of it is left, in a or b" flock -w 60 "$tmp/lock" true
}
left KILL
left TERM -

done_testing
