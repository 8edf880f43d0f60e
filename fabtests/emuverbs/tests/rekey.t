#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Keys that are closed and made again under traffic (own/rekey), over devices that place out
# of order, while queue pairs die and ports go and come back.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

own_need rekey

# ended: links' lanes and control channels, of both sides.
ended() {
	sed -n 's/.*<info> link to .* retired=\([0-9]*\) rebuilt=\([0-9]*\) resumes=\([0-9]*\).*/\1 \3/p' "$tmp/log" |
		awk '{ n += $1 + $2 } END { print n + 0 }'
}

# through NAME FAULT...
through() {
	local name=$1

	shift
	: >"$tmp/faults"
	[ $# -eq 0 ] || printf 'fault %s\n' "$@" >"$tmp/faults"
	env FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_LOG_SUBSYS=ep_ctrl \
		timeout 300 "$run" --config 2x16-ooo --faults "$tmp/faults" \
		"$build/fabtests/own/rekey" "${args[@]}" >"$tmp/log" 2>&1
	echo "rc $?" >>"$tmp/log"
	grep -E '^# (--seed|[0-9])' "$tmp/log"
	ok "$name: each is carried out or refused, in its own memory" grep -qx 'rc 0' "$tmp/log" ||
		grep -E '^(# si|not ok|Bail|rc )|ERROR|SUMMARY' "$tmp/log" | tail -n 20 | sed 's/^/# /'
}

args=("$@") # --seed N
through "good paths"
through "rails that die and return" "emu0 each=300 kill-qp" "emu1 each=170 lose-ack" \
	"emu1 each=90 lose-immediate" "emu0 each=700 port-down for=50ms" \
	"emu1 each=500 port-down for=50ms"
n=$(ended)
ok "rails that die and return: they did ($n)" test "$n" -gt 0
done_testing
