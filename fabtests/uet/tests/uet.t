#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/uet/suite: what fails is counted, what can't be run is skipped.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

suite=$top/fabtests/uet/suite

status() {
	local want=$1 got

	shift
	"$@" >"$tmp/out" 2>&1
	got=$?
	[ "$got" = "$want" ] || { diag "exit status $got, wanted $want" && diag "$(cat "$tmp/out")" && return 1; }
}

last() {
	[ "$(tail -n 1 "$tmp/out")" = "$1" ] || { diag "$(tail -n 3 "$tmp/out")" && return 1; }
}

ok "no list is wrong usage" status 2 "$suite"
ok "a list that isn't one" status 2 "$suite" some
ok "a part that isn't one" status 2 "$suite" --part some ci
ok "--help is none" status 0 "$suite" --help
ok "the parts are shown" status 0 "$suite" --show
ok "bad networks among them" grep -q 'drop=0.05' "$tmp/out"

# A tree whose programs and upstream are made up.
mkdir -p "$tmp/fabtests/uet" "$tmp/fabtests/netns" "$tmp/fabtests/lib" "$tmp/build/prov/wire/uet/tests"
cp "$suite" "$tmp/fabtests/uet/"
cp "$top/fabtests/lib/child.sh" "$tmp/fabtests/lib/"
export WEFT_TOP_BUILDDIR=$tmp/build
made() {
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/$1"
	chmod +x "$tmp/$1"
}
for test in pds switch back nscc path room; do
	made build/prov/wire/uet/tests/test_uet_$test 'echo "# seed 1"'
done
# For the scripts.
# shellcheck disable=SC2016
made fabtests/upstream 'printf "%s\n" "$*" >>"$0.args"; echo "fabtests weft: 3 pass, 1 skip, 0 fail"'
# shellcheck disable=SC2016
made fabtests/netns/run 'while [[ $1 = --* ]]; do [ $1 = --batches ] || shift; shift; done; exec "$@"'
try=$tmp/fabtests/uet/suite

ok "all good" status 0 "$try" ci
ok "all is counted" last "uet ci: 45 pass, 13 skip, 0 fail"
ok "over the wire alone" test \
	"$(grep -c 'FI_WEFT_SHM=0 --env FI_WEFT_WIRE=uet' "$tmp/fabtests/upstream.args")" = 13
ok "a bad network reaches the tests" grep -q -- '--env FI_WEFT_UET_SHIM=seed=2,drop=0.05' \
	"$tmp/fabtests/upstream.args"
ok "one part alone" status 0 "$try" --part veth-1500 full
ok "is all" last "uet full: 3 pass, 1 skip, 0 fail"

made build/prov/wire/uet/tests/test_uet_room 'echo "not ok 1"; exit 1'
ok "a program that fails" status 1 "$try" --part clock ci
ok "is counted" last "uet ci: 5 pass, 0 skip, 1 fail"
ok "its words are there" grep -q 'not ok 1' "$tmp/out"
rm "$tmp/build/prov/wire/uet/tests/test_uet_room"
ok "one that isn't there" status 1 "$try" --part clock ci
made fabtests/upstream 'echo "fabtests weft: 2 pass, 0 skip, 1 fail"; exit 1'
ok "a test that fails" status 1 "$try" --part drop-1 ci
ok "is counted once" last "uet ci: 2 pass, 0 skip, 1 fail"
made fabtests/upstream 'echo nothing'
ok "no result is a failure" status 1 "$try" --part drop-1 ci
made fabtests/netns/run 'echo "no namespaces here"; exit 77'
ok "no namespaces: nothing ran" status 1 "$try" --part veth-1500 ci
ok "which is skipped" last "uet ci: 0 pass, 1 skip, 0 fail"
ok "with the reason" grep -q 'veth-1500 is skipped: no namespaces here' "$tmp/out"

# Two senders, one of which gets next to nothing, and then both the same.
crowd=$tmp/fabtests/uet/congestion
cp "$top/fabtests/uet/congestion" "$top/fabtests/uet/congestion.awk" "$tmp/fabtests/uet/"
# shellcheck disable=SC2016
made build/prov/wire/uet/tests/test_uet_switch 'while [ $# -gt 1 ]; do shift; done
for t in {0..99}; do printf "%d\t1000\t100000\t100\n" ${t}00; done >"$1"
echo "# rate 1000000000 room 8000 use 0.99 fairness 0.51 queue 1000" >>"$1"'
ok "senders must be a number" status 2 "$crowd" --senders many
ok "not too large a one" status 2 "$crowd" --senders 257
ok "an unfair run fails" status 1 "$crowd" --senders 2 --out "$tmp/two"
ok "and says of what" grep -q 'missed: .*fairness' "$tmp/out"
ok "with a picture: two senders, an equal share, the queue" \
	test "$(grep -c '<polyline' "$tmp/two.svg")" = 4
sed -i 's/0.51/0.99/' "$tmp/build/prov/wire/uet/tests/test_uet_switch"
ok "a fair one is good" status 0 "$crowd" --senders 2 --out "$tmp/two"
sed -i 's/queue 1000/queue 5000/' "$tmp/build/prov/wire/uet/tests/test_uet_switch"
ok "with a long queue it isn't" status 1 "$crowd" --senders 2 --out "$tmp/two"

done_testing
