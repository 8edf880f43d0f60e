#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/coll runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

"$top/bench/coll" --quick --sizes 8:512 >"$tmp/out" 2>"$tmp/err"
status=$?
[ $status != 2 ] || skip_all "$(tail -n 1 "$tmp/err")"
ok "it runs" test $status = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "the last line is read" grep -qE '^coll vs openmpi: geometric mean [0-9.]+, worst [0-9.]+ \([a-z_]+( [0-9]+[KM]?)?, 2 ranks\)$' \
	<<<"$(tail -n 1 "$tmp/out")"
# Sizes 8, 32, 128 and 512 of eight operations, and the barrier.
ok "every cell is there" test "$(grep -cE '^ +2 [a-z_]+ ' "$tmp/out")" = 33

"$top/bench/coll" --quick --sizes 8:32 --cpus 1 >"$tmp/out" 2>"$tmp/err"
ok "it runs on one processor" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "every cell says that there were more ranks" \
	test "$(grep -cE '^ +2 [a-z_]+ .*\(more ranks than processors\)$' "$tmp/out")" = 17

# Those with counts: six of them.
"$top/bench/coll" --quick --sizes 8:8 --counts >"$tmp/out" 2>"$tmp/err"
ok "it runs with counts" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "every cell of these is there" test "$(grep -cE '^ +2 (allgatherv|reduce_scatterv|alltoallv|alltoallv_dynamic|gatherv|scatterv) ' "$tmp/out")" = 6

# Both peers, side by side; MPICH is there where somebody installed it.
"$top/bench/coll" --quick --sizes 8:8 --vs openmpi,mpich >"$tmp/out" 2>"$tmp/err"
status=$?
if [ $status = 2 ]; then
	skip 2 "$(tail -n 1 "$tmp/err")"
else
	ok "it runs with two peers" test $status = 0 || diag "$(tail -n 5 "$tmp/err")"
	ok "both have a figure in every cell" test "$(grep -cE \
		'^ +2 [a-z_]+ +[0-9-]+( +[0-9.]+){4}( |$)' "$tmp/out")" = 9
fi

done_testing
