#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the wire counts, of all and of each queue pair, where collectives show it: weft perf
# --stats, files of counters (WEFT_STATS), dumps of the flight recorder.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

weft=$build/weft
why=$(weft_absent) && skip_all "$why"
unset WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_JOB WEFT_TTY WEFT_SEED

printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1' 'device emu1 gid=10.2.0.1' >"$tmp/two"
mkdir "$tmp/stats" "$tmp/trace" || bail "no folders"

# perf FAULTS ARGUMENT...: weft perf of two ranks, in $tmp/log.
perf() {
	local faults=$1

	shift
	printf 'fault %s\n' "$faults" >"$tmp/faults"
	env FI_PROVIDER=weft FI_WEFT_WIRE=verbs FI_WEFT_SHM=0 FI_WEFT_LANES=4 WEFT_LINES=off \
		timeout 300 "$run" --config "$tmp/two" --faults "$tmp/faults" \
		"$weft" run -n 2 --no-prefix "$weft" perf "$@" >"$tmp/log" 2>&1
	echo "rc $?" >>"$tmp/log"
}

# shown NAME: the counter's figure in the table.
shown() {
	sed -n "s/^ *\([0-9]*\)  $1\$/\1/p" "$tmp/log"
}

# summed SERIES [LABELS]: of all ranks' files.
summed() {
	cat "$tmp/stats"/*.prom | grep -E "^$1\{.*${2-}.*\} [0-9]+$" |
		awk '{ n += $NF } END { printf "%d\n", n }'
}

WEFT_STATS=$tmp/stats perf 'emu0 each=60 kill-qp' allreduce --sizes 4M --iters 30 --stats
ok "queue pairs die: the figures are right all the same" grep -qx 'rc 0' "$tmp/log" ||
	diag "$(tail -n 5 "$tmp/log")"
for name in verbs.lanes_retired verbs.segments verbs.rail0_bytes verbs.rail1_bytes; do
	n=$(shown "$name")
	ok "perf --stats has $name (${n:-none})" test "${n:-0}" -gt 0
done
retired=$(shown verbs.lanes_retired)
ok "a file for each rank" test "$(compgen -G "$tmp/stats/*.prom" | wc -l)" = 2
ok "with the same of all" test "$(summed weft_provider_total '"verbs.lanes_retired"')" -ge "${retired:-1}"
for rail in 0 1; do
	n=$(summed weft_lane_bytes_total "peer=\"[01]\",lane=\"[0-9]*\",rail=\"$rail\"")
	ok "bytes of the lanes of rail $rail, to a rank ($n)" test "$n" -gt 0
done
n=$(summed weft_lane_retired_total)
ok "which of them were retired ($n)" test "$n" -gt 0
ok "those of the rail that had faults only" \
	test "$(summed weft_lane_retired_total 'rail="1"')" = 0
ok "no series twice" is_empty "$(for f in "$tmp/stats"/*.prom; do
	sed -n 's/^\([a-z_]*{.*}\) .*/\1/p' "$f" | sort | uniq -d
done)"

# The device that is left goes as well, in the middle: what was recorded of it is in the dump.
FI_WEFT_CONNECT_TIMEOUT=3000 WEFT_TRACE=$tmp/trace \
	perf 'emu0 80 port-down
fault emu1 250 port-down' allreduce --sizes 4M --iters 200
ok "no rail is left: the call fails" grep -q '^rc [1-9]' "$tmp/log"
"$weft" trace dump "$tmp/trace" >"$tmp/dump" 2>"$tmp/err"
for words in 'rail down *value 0$' 'rail down *value 1$' 'lane down *rank [01] *value [0-3]$'; do
	ok "the flight recorder has: $words" grep -qE -- "provider.*$words" "$tmp/dump" ||
		diag "$(grep provider "$tmp/dump" | tail -n 5)"
done
done_testing
