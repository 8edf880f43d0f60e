#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/sim runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

if [ ! -x /usr/bin/time ]; then
	skip 4 "/usr/bin/time is not installed"
	done_testing
	exit
fi
"$top/bench/sim" --ranks 64 --out "$tmp/out" >"$tmp/table" 2>"$tmp/err"
ok "it runs" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "a line for each plan" test "$(grep -cE '^all(gather|reduce|toall) +[a-z-]+ +[0-9]+[KMG]? +[0-9.]+ +[0-9]+ ' "$tmp/table")" = 8
ok "the last line is read" grep -qE '^sim: 64 ranks, 8 plans, slowest [0-9.]+ s of processor time, [0-9]+ MiB, ' \
	<<<"$(tail -n 1 "$tmp/table")"
ok "pictures" test -s "$tmp/out/allgather-packed.svg" -a -s "$tmp/out/allgather-rails.svg"
"$top/bench/sim" --ranks 100 >/dev/null 2>&1
ok "a wrong number is refused" test $? = 2

done_testing
