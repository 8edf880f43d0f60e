#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/overlap runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

timeout 170 "$top/bench/overlap" --quick >"$tmp/out" 2>"$tmp/err"
ok "it runs" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "a row for the size" grep -qE '^ +65536 +[0-9]+ % +[0-9]+ % ' "$tmp/out"
ok "the last line is read" \
	grep -qE '^overlap of allreduce 65536: [0-9]+ % hidden \(least [0-9]+\), 2 ranks$' \
	<<<"$(tail -n 1 "$tmp/out")"
"$top/bench/overlap" --ranks 0 >/dev/null 2>&1
ok "no ranks are refused" test $? = 2
"$top/bench/overlap" --quick --operation nothing >/dev/null 2>"$tmp/err"
ok "an operation that there is not is said" \
	test $? = 1 -a -n "$(grep nothing "$tmp/err")"

done_testing
