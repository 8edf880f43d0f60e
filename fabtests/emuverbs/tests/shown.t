#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What users see of rails and profiles that are in use: fi_info -v, weft info --profiles.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

# What makes the devices' text has a sanitized test in prov/fi/tests/test_info.
why=$(weft_absent) && skip_all "$why"
two='device emu0 gid=10.1.0.1 delivery=mixed'$'\n''device emu1 gid=10.2.0.1'
export FI_WEFT_LANES=6 FI_WEFT_PROFILE='rack:segment=256K,traffic_class=8'

says() {
	ok "$1" grep -qE "$2" "$tmp/out" || diag "$(shown)"
}

over "$two" "$build/weft" info --profiles
says "weft info --profiles ends well" '^rc 0$'
says "it names the domain" '^verbs:emu0\+emu1$'
says "and each rail" '^ +rail 1: emu1 port 1, RoCE v2 by IPv4, .* up$'
says "which places bytes in order" '^ +rail 1: emu1 .* bytes in order, up$'
ok "which the other doesn't" is_empty "$(grep 'emu0 .*in order' "$tmp/out")"
says "the values that were asked for" '^ +profile rack: lanes=6 segment=262144 .*traffic_class=8'
says "of that distance" '^ +profile zone: lanes=6 segment=524288 .*traffic_class=0'
ok "once" test "$(grep -c '^verbs:' "$tmp/out")" = 1
FI_WEFT_RAILS=emu1 over "$two" "$build/weft" info --profiles
says "a rail that was asked for" '^verbs:emu1$'
ok "alone" is_empty "$(grep 'emu0' "$tmp/out")"
FI_WEFT_WIRE=shm over "$two" "$build/weft" info --profiles
says "where there are no devices that is said" '^no RDMA device is used'
says "and the status" '^rc 1$'
# A device without hardware has one queue pair to a peer, unless somebody wants more.
(
	unset FI_WEFT_LANES FI_WEFT_PROFILE
	over "$two made=software" "$build/weft" info --profiles
	cp "$tmp/out" "$tmp/mixed"
	over 'device emu0 gid=10.1.0.1 made=software' "$build/weft" info --profiles
)
says "what is software is said" '^ +rail 0: emu0 .* software, .*up$'
says "it has one lane" '^ +profile rack: lanes=1 '
cp "$tmp/mixed" "$tmp/out"
says "beside hardware, too" '^ +rail 1: emu1 .* software, .*up$'
ok "and hardware is none" is_empty "$(grep 'emu0 .*software' "$tmp/out")"
says "where there is hardware there are more lanes" '^ +profile rack: lanes=8 '
over 'device emu0 gid=10.1.0.1 made=software' "$build/weft" info --profiles
says "as many as are asked for" '^ +profile rack: lanes=6 '
if command -v fi_info >/dev/null; then
	over "$two" fi_info -p weft -v
	says "fi_info -v has the devices" '^ +devices: emu0\+emu1$'
	says "and the values" '^ +profile rack: lanes=6 segment=262144 '
	says "and ends well" '^rc 0$'
else
	# libfabric's own command, of a package that building doesn't need.
	skip 3 "no fi_info (Debian: libfabric-bin)"
fi
done_testing
