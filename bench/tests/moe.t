#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/moe runs, every token comes back, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

for copies in rank expert; do
	timeout 120 "$top/bench/moe" --quick --copies "$copies" >"$tmp/out" 2>"$tmp/err"
	ok "it runs, a copy for each $copies" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
	ok "the last line is read" grep -qE '^moe: 2 ranks, bytes [0-9.]+, time [0-9.]+$' \
		<<<"$(tail -n 1 "$tmp/out")"
	ok "dispatch, combine and both" \
		test "$(grep -cE '^(dispatch|combine|both) ' "$tmp/out")" = 3
	# What moves depends on the seed alone.
	# shellcheck disable=SC2016 # awk's
	ok "padding moves more" awk '$1 == "both" { exit !($4 > 1) }' "$tmp/out"
done
# shellcheck disable=SC2016 # the inner shell's
ok "experts that ranks cannot share are refused" bash -c '! "$1"/bench/moe --quick --experts 3 2>/dev/null' bash "$top"

done_testing
