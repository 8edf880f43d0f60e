#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Links that are given up half-made while their queue pairs have completions, of shared
# receives and of their own.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

for srqs in 8 0; do
	printf '%s\n' 'emuverbs 1' "device emu0 gid=10.1.0.1 rnr=fatal max_srq=$srqs" >"$tmp/device"
	emulated test_left "$tmp/device" "" "$srqs shared queues"
done
done_testing
