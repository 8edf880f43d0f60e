#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/ftar runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

timeout 240 "$top/bench/ftar" --quick >"$tmp/out" 2>"$tmp/err"
ok "it runs" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "a line for each size" test "$(grep -cE '^ +(65536|262144) ' "$tmp/out")" = 2
ok "the last line is read" grep -qE \
	'^ftar: 2 members, 262144 bytes: [0-9.]+ us plain, [0-9.]+ us, [0-9.]+ times$' \
	<<<"$(tail -n 1 "$tmp/out")"
"$top/bench/ftar" --bytes 8,x >/dev/null 2>&1
ok "a wrong number is refused" test $? = 2

done_testing
