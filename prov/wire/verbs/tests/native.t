#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_WEFT_VERBS_ATOMICS=native over emulated devices: rules C6, D2 and E4. A queue pair that
# ends with an atomic under way makes it fail, carried out or not, and never runs it again.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

export FI_WEFT_LANES=2 FI_WEFT_VERBS_ATOMICS=native FI_WEFT_SHM=0
printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal' >"$tmp/device"
printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal delivery=mixed' >"$tmp/mixed"
NATIVE_FAILS=none emulated test_native "$tmp/device" "" "native"
NATIVE_FAILS=none emulated test_native "$tmp/mixed" "" "out of order"
for what in lose-ack lose-segment kill-qp; do
	echo "fault emu0 each=60 $what" >"$tmp/faults"
	NATIVE_FAILS=some emulated test_native "$tmp/device" "$tmp/faults" "$what"
done
done_testing
