#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two coordinators of one job that keep its state in etcd: one leads, and the other takes
# over when it is killed, when it ends, and when its lease does; and an etcd that is gone.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"

command -v etcd >/dev/null || skip_all "etcd is not installed"

weft=$build/weft
member=$build/cli/tests/ft_member
# At most 64 characters, wherever the scratch folder is.
export WEFT_JOB="secret of ${tmp##*/}"
pids=()
everything_ends() {
	kill -CONT "${pids[@]}" 2>/dev/null
	kill -9 "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$tmp"
}
trap '[ $BASHPID = $$ ] && everything_ends' EXIT

# has FILE TEXT [COUNT]: waits until so many lines of the file have it.
has() {
	for _ in {1..3000}; do
		[ "$(grep -c -- "$2" "$1")" -ge "${3-1}" ] && return
		sleep 0.02
	done
	cat "$1"
	return 1
}

# A port that nobody has: below those that the system gives away by itself.
free_port() {
	local port

	while :; do
		port=$((10000 + (RANDOM * 32768 + RANDOM) % 20000))
		(: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo $port
}

# start_etcd: at $etcd. Somebody else may take a port meanwhile: then at another.
start_etcd() {
	local client peer

	for _ in {1..20}; do
		client=$(free_port)
		peer=$(free_port)
		: >"$tmp/etcd"
		etcd --data-dir "$tmp/data" --listen-client-urls "http://127.0.0.1:$client" \
			--advertise-client-urls "http://127.0.0.1:$client" \
			--listen-peer-urls "http://127.0.0.1:$peer" \
			--initial-advertise-peer-urls "http://127.0.0.1:$peer" \
			--initial-cluster "default=http://127.0.0.1:$peer" \
			>"$tmp/etcd" 2>&1 &
		keeper=$!
		pids+=("$keeper")
		etcd=127.0.0.1:$client
		for _ in {1..1500}; do
			grep -q 'ready to serve client requests' "$tmp/etcd" && return
			kill -0 $keeper 2>/dev/null || break
			sleep 0.02
		done
		kill -9 $keeper 2>/dev/null
		rm -rf "$tmp/data"
	done
	diag "$(tail -n 5 "$tmp/etcd")"
	skip_all "etcd does not run here"
}

# start NAME PORT OPTION...: its process in $coord, what it says in files of that name.
start() {
	local name=$1 port=$2

	shift 2
	: >"$tmp/$name"
	"$weft" coordinator --listen "127.0.0.1:$port" --state "etcd://$etcd/jobs/$name0" \
		--size 2 --silence 20 "$@" >"$tmp/$name" 2>"$tmp/$name.err" &
	coord=$!
	pids+=("$coord")
}

# so_far: how many steps the first member counted.
so_far() {
	grep -c '^step' "$tmp/m1"
}

# goes_on: and so many more are counted.
goes_on() {
	has "$tmp/m1" '^step .* of 2' $(($(so_far) + 10))
}

start_etcd
name0=one
port_a=$(free_port)
port_b=$(free_port)
start a "$port_a" --first
a=$coord
ok "a coordinator leads" has "$tmp/a" "^127.0.0.1:$port_a\$"
start b "$port_b"
b=$coord
ok "another waits, and says for whom" has "$tmp/b.err" "listens at 127.0.0.1:$port_a leads"
ok "and does not listen" test ! -s "$tmp/b"
for i in 1 2; do
	"$member" "127.0.0.1:$port_a,127.0.0.1:$port_b" 100000000 >"$tmp/m$i" 2>&1 &
	pids+=($!)
done
ok "members run steps" has "$tmp/m1" '^step 10 of 2'

kill -9 $a
wait $a 2>/dev/null
ok "the other takes over from one that is killed" has "$tmp/b" "^127.0.0.1:$port_b\$"
ok "and the steps go on" goes_on

start a "$port_a"
a=$coord
ok "who comes back waits" has "$tmp/a.err" "listens at 127.0.0.1:$port_b leads"
kill -TERM $b
wait $b
ok "one that is ended ends" test $? = 0
ok "and gives the lead back" has "$tmp/a" "^127.0.0.1:$port_a\$"
ok "the steps go on there" goes_on

# One that is stopped until its lease has ended, and another leads.
start b "$port_b"
b=$coord
ok "the other waits again" has "$tmp/b.err" "listens at 127.0.0.1:$port_a leads"
kill -STOP $a
ok "it takes over from one that stands still" has "$tmp/b" "^127.0.0.1:$port_b\$"
kill -CONT $a
wait $a
ok "which ends when it finds out" test $? = 1
ok "and says so" grep -q 'another coordinator leads by now' "$tmp/a.err"
ok "the steps go on" goes_on

kill -STOP $keeper
sleep 0.2
kill -CONT $keeper
ok "and when etcd stood still for a while" goes_on
awk '$1 == "step" { if ($2 != n + 1) exit 1; n++ }' "$tmp/m1"
ok "no step was counted twice, none was left out" test $? = 0

kill -9 $keeper
wait $keeper 2>/dev/null
wait $b
ok "without etcd the coordinator gives up in the end" test $? = 1
ok "and says why" grep -q "etcd at $etcd: " "$tmp/b.err"

# says STATUS TEXT COMMAND...
says() {
	local want=$1 text=$2 got

	shift 2
	timeout 100 "$@" >"$tmp/said" 2>&1
	got=$?
	cat "$tmp/said"
	[ "$got" = "$want" ] && grep -q -- "$text" "$tmp/said"
}
for name in etcd: "etcd://$etcd" "etcd://$etcd/" etcd://here/x "etcd:$etcd/x"; do
	ok "no etcd: $name" says 1 'etcd://HOST:PORT/PREFIX' "$weft" coordinator \
		--listen 127.0.0.1:0 --state "$name" --size 2
done

done_testing
