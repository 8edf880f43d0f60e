#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/dqplb runs, its last line can be read, and wrong options are said.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

ok "it runs" "$build/bench/dqplb" --ops 100000 --rounds 1
"$build/bench/dqplb" --ops 100000 --rounds 1 >"$tmp/out" 2>&1
figures='immediate [0-9.]+ ns, mixed up [0-9.]+, fast [0-9.]+; segment [0-9.]+, fast [0-9.]+'
ok "the last line is read" grep -qE "^dqplb: $figures, with record [0-9.]+\$" \
	<<<"$(tail -n 1 "$tmp/out")"
"$build/bench/dqplb" --ops few >"$tmp/out" 2>"$tmp/err"
status=$?
ok "wrong options have status 2" test $status = 2
ok "and are said" grep -q '^usage: dqplb' "$tmp/err"

done_testing
