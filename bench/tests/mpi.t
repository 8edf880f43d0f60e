#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/mpi runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

"$top/bench/mpi" --quick --rounds 1 --sizes 8,64K >"$tmp/out" 2>"$tmp/err"
status=$?
[ $status != 2 ] || skip_all "$(tail -n 1 "$tmp/err")"
# 3: a machine that moved too much, which is no fault of the script. The last line then
# names the sizes that could be compared, which may be any of them or none (report.t).
ok "it runs" test $status = 0 -o $status = 3 || diag "$(tail -n 5 "$tmp/err")"
figures='8B [0-9.]+, 64KiB [0-9.]+'
[ $status = 0 ] || figures='((8B|64KiB) [0-9.]+(, 64KiB [0-9.]+)?|nothing to compare)'
ok "the last line is read" grep -qE \
	"^mpi over weft vs vader \((near|far), [0-9]+ rounds?\): $figures\$" \
	<<<"$(tail -n 1 "$tmp/out")" || diag "$(tail -n 3 "$tmp/out")"
ok "every size is there" test "$(grep -cE '^(8B|64KiB) ' "$tmp/out")" = 2

done_testing
