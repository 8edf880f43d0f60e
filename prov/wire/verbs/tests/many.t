#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Sixty-four peers of one endpoint, over devices with small queues: shared receives where a
# device has them, one, few or many; else each its own. Rules A7, B3, C2.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

export FI_WEFT_LANES=1
device() {
	printf 'emuverbs 1\ndevice emu0 gid=10.1.0.1 rnr=fatal %s\n' "$1" >"$tmp/device"
}

device "max_cqe=160 max_srq_wr=64 max_qp_wr=64"
MANY_SRQS=9 MANY_CQS=20 emulated test_many "$tmp/device" "" "small queues"
device "max_srq=2 max_srq_wr=64"
MANY_SRQS=2 emulated test_many "$tmp/device" "" "few shared queues"
# Queue pairs are kept for a while, and then go all the same.
device "last=never"
MANY_SRQS=1 emulated test_many "$tmp/device" "" "the last receive is never said to be out"
device "max_srq=0"
MANY_SRQS=0 emulated test_many "$tmp/device" "" "no shared queues"
[ -n "${WEFT_TEST_SHORT:-}" ] ||
	MANY_SRQS=1 emulated test_many 2x16-ooo "" "large queues, out of order"
done_testing
