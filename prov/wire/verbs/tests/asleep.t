#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A target that makes no call while all queue pairs of the link die: on one device, and on two
# that place out of order. Ports come back, with an event or without one, and it sleeps.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal' >"$tmp/one"
printf '%s\n' 'emuverbs 1' 'seed 5' 'device emu0 gid=10.1.0.1 rnr=fatal delivery=mixed' \
	'device emu1 gid=10.2.0.1 rnr=fatal delivery=mixed' >"$tmp/two"
# A machine that does much else is no peer that is gone.
export FI_WEFT_CONNECT_TIMEOUT=60000
FI_WEFT_LANES=2 emulated test_asleep "$tmp/one" "" "1 device"
FI_WEFT_LANES=8 emulated test_asleep "$tmp/two" "" "2 devices out of order"
echo 'fault emu1 40 port-down for=200ms' >"$tmp/faults"
ASLEEP_EVENTS=1 FI_WEFT_LANES=8 emulated test_asleep "$tmp/two" "$tmp/faults" "events"
done_testing
