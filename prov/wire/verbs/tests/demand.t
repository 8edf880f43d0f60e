#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# On-demand paging: devices without, with it for regions, and for all memory at once; no more
# than 8 MiB can be locked. Rules C6, D2.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

export FI_WEFT_LANES=2
for odp in none explicit implicit; do
	printf 'emuverbs 1\ndevice emu0 gid=10.1.0.1 max_locked=8192 odp=%s\n' \
		"$odp" >"$tmp/device"
	DEMAND_WANT=$odp emulated test_demand "$tmp/device" "" "odp=$odp"
done
done_testing
