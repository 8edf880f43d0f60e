#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/chaos/run for a few seconds, and what it refuses.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"

export WEFT_TOP_BUILDDIR=$build
run=$top/fabtests/chaos/run

# refused TEXT ARGUMENT...
refused() {
	local text=$1 out rc

	shift
	out=$("$run" "$@" 2>&1)
	rc=$?
	[ "$rc" = 2 ] && grep -qF -- "$text" <<<"$out"
}
ok "an unknown option" refused 'there is no "--sometimes"' --sometimes
ok "no number" refused 'wants a number, not "many"' --seconds many
ok "too few ranks" refused '--ranks wants 4 to 32, not "3"' --ranks 3

# A busy machine makes it long, not wrong: silence is long, and what hangs takes minutes.
timeout 270 "$run" --seconds 4 --ranks 4 --deadline 3 >"$tmp/out" 2>&1
status=$?
last=$(tail -n 1 "$tmp/out")
ok "ranks die, newcomers come, and all sums are right" test $status = 0 ||
	diag "$(tail -n 20 "$tmp/out")"
ok "somebody died" grep -qE '^chaos: deaths [1-9]|coordinator killed [1-9]' <<<"$last"
ok "no sum was wrong, nothing failed or hung" \
	grep -q ', wrong sums 0, errors 0, hangs 0, ' <<<"$last"
diag "$last"

done_testing
