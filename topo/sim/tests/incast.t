#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# topo/sim/incast: the transmit machine's limits keep switches empty without costing time;
# all packets arrive, also where queues are short.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-.}/tests/tap.sh" || exit 99

incast=$build/topo/sim/incast
"$incast" --bytes 16M --link 256K --svg "$tmp/svg" >"$tmp/out"
ok "32 senders" test $? -eq 0
sed 's/^/# /' "$tmp/out"
# incast: peak P times lower with limits, completion +C %
good=$(awk '/^incast:/ { print ($3 >= 10 && $9 < 5) }' "$tmp/out")
ok "at least ten times lower, at under 5 % more time" test "$good" = 1
# No faster than the receiver's port: 32 x 16 MiB at 50 GB/s.
slow=$(awk '/^(no|profile|limits)/ { t = $(NF - 2); if (t < 32 * 16 * 1048576 / 50e3) bad = 1; n++ }
	END { print (n == 3 && !bad) }' "$tmp/out")
ok "no faster than the receiver's port" test "$slow" = 1
ok "as many packets each way" test \
	"$(awk '/^(no|profile|limits)/ { print $(NF - 1) }' "$tmp/out" | sort -u | wc -l)" = 1
ok "a picture" test "$(grep -c '<polyline' "$tmp/svg")" = 3
"$incast" --senders 20 --bytes 2M --buffer 64K >"$tmp/out"
ok "short queues: all arrives" test $? -eq 0
most=$(awk '/^(no|profile|limits)/ { if ($(NF - 3) > 0.0626) bad = 1 } END { print !bad }' "$tmp/out")
ok "and no queue holds more" test "$most" = 1
for bad in '--senders 0' '--senders 1001' '--bytes x' '--buffer 1K' '--nonsense' 'more'; do
	# shellcheck disable=SC2086 # two words
	"$incast" $bad >/dev/null 2>&1
	ok "refused: $bad" test $? -eq 2
done
done_testing
