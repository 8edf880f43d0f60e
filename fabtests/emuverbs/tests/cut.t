#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# All rails go for good under traffic (own/cut): every operation ends with an error that
# names the peer and the cause, and meanwhile the log says what the link waits for.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

own_need cut

# said PATTERN...: each is in a line of the log.
said() {
	local pattern

	for pattern in "$@"; do
		grep -q -- "$pattern" "$tmp/log" || return
	done
}

# Either end may be the first to notice.
for host in 1 2; do
	printf 'fault %s port-down host='"$host"'\n' "emu0 60" "emu1 60" >"$tmp/faults"
	env FI_WEFT_CONNECT_TIMEOUT=3000 FI_WEFT_STALL_TIME=200 FI_LOG_LEVEL=warn \
		FI_LOG_PROV=weft timeout 200 \
		"$run" --config 2x16-ooo --faults "$tmp/faults" \
		"$build/fabtests/own/cut" >"$tmp/log" 2>&1
	echo "rc $?" >>"$tmp/log"
	grep -E '^# [0-9]' "$tmp/log"
	ok "host $host loses its rails: each error names the peer and the cause" \
		grep -qx 'rc 0' "$tmp/log" ||
		grep -E '^(# si|not ok|Bail|rc )|ERROR|SUMMARY' "$tmp/log" | tail -n 20 | sed 's/^/# /'
	ok "host $host: the log says what the link waited for" \
		said 'stands still: nothing that is under way ended for' \
		'control channel on ' 'rail emu0 is ' \
		'lane 0\.[0-9]* on emu0, .*sender .*receiver'
done
done_testing
