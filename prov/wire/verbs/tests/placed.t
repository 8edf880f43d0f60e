#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Puts that are done when they are in memory, over devices that acknowledge before: in order,
# out of order on two of them, and while queue pairs die. Rule E3.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal placing=late' >"$tmp/one"
printf '%s\n' 'emuverbs 1' 'seed 3' \
	'device emu0 gid=10.1.0.1 rnr=fatal delivery=mixed placing=late' \
	'device emu1 gid=10.2.0.1 rnr=fatal delivery=mixed placing=late' >"$tmp/two"
export FI_WEFT_LANES=8

emulated test_placed "$tmp/one" "" "1 device"
emulated test_placed "$tmp/two" "" "2 devices out of order"
printf 'fault %s\n' "emu0 each=90 lose-ack" "emu1 each=130 lose-segment" >"$tmp/faults"
PLACED_WANT=1 emulated test_placed "$tmp/two" "$tmp/faults" "queue pairs die"
kinds=(kill-qp lose-ack)
[ -z "${WEFT_TEST_SHORT:-}" ] || kinds=(kill-qp)
for fault in "${kinds[@]}"; do
	printf 'fault %s\n' "emu0 each=20 $fault" >"$tmp/faults"
	FI_WEFT_LANES=1 PLACED_WANT=1 emulated test_placed "$tmp/one" "$tmp/faults" \
		"$fault of every 20th request of one lane"
done

# The target makes no call, and a rail dies with what is under way: its door is enough.
nth=(2 9)
[ -z "${WEFT_TEST_SHORT:-}" ] || nth=(5)
for n in "${nth[@]}"; do
	printf 'fault %s\n' "emu1 $n port-down" >"$tmp/faults"
	PLACED_STOPS=1 emulated test_placed "$tmp/two" "$tmp/faults" \
		"a rail dies with segment $n, the target sleeps"
done

# Puts with numbers: what was heard of isn't written again.
printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal' >"$tmp/prompt"
printf 'fault %s\n' "emu0 each=41 lose-ack" >"$tmp/faults"
FI_WEFT_NUMBERED=1 emulated test_placed "$tmp/prompt" "$tmp/faults" "numbered"

# As an application meets it: the target looks without any call.
FI_LOG_LEVEL=info "$run" --config "$tmp/two" timeout 200 "$build/fabtests/own/levels" \
	>"$tmp/out" 2>"$tmp/err"
ok "FI_DELIVERY_COMPLETE: a write that is done is seen by who polls memory" \
	grep -q '^ok .* a delivered write is there$' "$tmp/out" || diag "$(tail -5 "$tmp/out")"
# A message that comes behind a write, by order: the device has acknowledged it long before.
WEFT_TEST_CASE="a message behind a write" "$run" --config "$tmp/two" timeout 200 \
	"$build/fabtests/own/rma" >"$tmp/out2" 2>"$tmp/err2"
ok "FI_ORDER_SAW: a message comes when the write before it is in memory" \
	grep -q '^ok 1 - a message behind a write$' "$tmp/out2" || diag "$(tail -5 "$tmp/err2")"
said() {
	ok "the log says $1" grep -q "$2" "$tmp/err"
}
said "which rails are used" 'rail 1: emu1 port 1, RoCE v2 by IPv4, GID [0-9]*, MTU 4096, '
said "how links to each distance spread" \
	'profile rack: lanes=8 segment=[0-9]* segments=[0-9]* .*, window [0-9]'
said "what a link goes by" 'link with .*, host: 8 lanes over 2 rails, window [0-9]*, '
said "what a link has done" ' segments=[1-9].* retired=0 .* waits=[0-9]* flushes=[1-9]'
done_testing
