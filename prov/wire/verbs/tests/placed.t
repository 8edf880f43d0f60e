#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Puts that are done when they are in memory, over devices that acknowledge before: in order,
# out of order on two of them, and while queue pairs die. Rule E3.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"
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

# As an application meets it: the target looks without any call.
"$run" --config "$tmp/two" timeout 200 "$build/fabtests/own/levels" >"$tmp/out" 2>&1
ok "FI_DELIVERY_COMPLETE: a write that is done is seen by who polls memory" \
	grep -q '^ok .* a delivered write is there$' "$tmp/out" || diag "$(tail -5 "$tmp/out")"
done_testing
