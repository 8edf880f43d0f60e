#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The wire between two processes over emulated devices: one and many queue pairs, two
# devices that place out of order, IPv6, paths of InfiniBand. Rules A8, A9, B1, B3, C6, D1 to D3.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

emulated test_verbs 1x1 "" "1 queue pair"
emulated test_verbs 2x16-ooo "" "2 devices out of order"
emulated test_verbs 2x4-ipv6 "" "IPv6 only"
[ -n "${WEFT_TEST_SHORT:-}" ] || emulated test_verbs 1x16 "" "16 queue pairs"

# Packets of another size at the two ends: paths have those that both can.
printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal mtu=4096' \
	'device emu1 gid=10.2.0.1 rnr=fatal mtu=1024' >"$tmp/mtus"
[ -n "${WEFT_TEST_SHORT:-}" ] || FI_WEFT_RAILS=emu0 RIG_SERVER_RAILS=emu1 \
	emulated test_verbs "$tmp/mtus" "" "MTU 4096 to 1024"

# A port of InfiniBand without a GID, and one with: by LID, as there is no other way.
printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 link=infiniband gids=none' \
	'device emu1 gid=10.2.0.1 link=infiniband' >"$tmp/lids"
[ -n "${WEFT_TEST_SHORT:-}" ] || FI_WEFT_RAILS=emu0 RIG_SERVER_RAILS=emu1 \
	emulated test_verbs "$tmp/lids" "" "no GID at one end"

# Two subnets of InfiniBand.
printf '%s\n' 'emuverbs 1' 'device emu0 gid=fd00:1::1 link=infiniband' \
	'device emu1 gid=fd00:2::2 link=infiniband' >"$tmp/subnets"
[ -n "${WEFT_TEST_SHORT:-}" ] || FI_WEFT_RAILS=emu0 RIG_SERVER_RAILS=emu1 \
	emulated test_verbs "$tmp/subnets" "" "two subnets"
done_testing
