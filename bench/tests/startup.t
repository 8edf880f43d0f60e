#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/startup runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

timeout 120 env WEFT_LINES=off "$top/bench/startup" --quick >"$tmp/out" 2>"$tmp/err"
ok "it runs" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "a line for each number of ranks" test "$(grep -cE '^ +[24] ' "$tmp/out")" = 2
# Two rounds of an all-reduce by doubling: two messages of each of four ranks.
ok "the last line is read" grep -qE '^startup: 4 ranks, [0-9.]+ ms, 2.00 messages per rank$' \
	<<<"$(tail -n 1 "$tmp/out")"
# In memory that the ranks share there is none.
timeout 120 env WEFT_LINES=auto "$top/bench/startup" --quick >"$tmp/out" 2>"$tmp/err"
ok "short calls of one host's ranks need no message" \
	grep -qE '^startup: 4 ranks, [0-9.]+ ms, 0.00 messages per rank$' \
	<<<"$(tail -n 1 "$tmp/out")"
"$top/bench/startup" --ranks 4:x >/dev/null 2>&1
ok "a wrong range is refused" test $? = 2

done_testing
