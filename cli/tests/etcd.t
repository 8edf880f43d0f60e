#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Two coordinators of one job that keep its state in etcd: one leads, and the other takes
# over when it is killed, when it ends, and when its lease does; and an etcd that is gone.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

# shellcheck source=cli/tests/etcd.sh
. "$WEFT_TOP_SRCDIR/cli/tests/etcd.sh"

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

for name in etcd: "etcd://$etcd" "etcd://$etcd/" etcd://here/x "etcd:$etcd/x"; do
	ok "no etcd: $name" says 1 'etcd://HOST:PORT/PREFIX' "$weft" coordinator \
		--listen 127.0.0.1:0 --state "$name" --size 2
done

done_testing
