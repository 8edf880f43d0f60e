#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/chaos/run for a few seconds, and what it refuses.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

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

ok "cuts that are none" refused '--cuts wants yes, no or auto, not "some"' --cuts some

# survived WORDS ARGUMENT...: a busy machine makes it long, not wrong: silence is long, and
# what hangs takes minutes.
survived() {
	local words=$1 status last

	shift
	timeout 270 "$run" --ranks 4 --deadline 3 "$@" >"$tmp/out" 2>&1
	status=$?
	last=$(tail -n 1 "$tmp/out")
	ok "$words, and all sums are right" test $status = 0 ||
		diag "$(tail -n 20 "$tmp/out")"
	ok "$words: something was harmed" \
		grep -qE '^chaos: deaths [1-9]|coordinator killed [1-9]|^cut briefly [1-9]|parted [1-9]' "$tmp/out"
	ok "$words: no sum was wrong, nothing failed or hung" \
		grep -q ', wrong sums 0, errors 0, hangs 0, ' <<<"$last"
	diag "$last"
}

seconds=60
[ -z "${WEFT_TEST_SHORT-1}" ] || seconds=4
survived "ranks die, newcomers come" --seconds 4 --cuts no
if "$run" --seconds 0 --ranks 4 --cuts yes >"$tmp/out" 2>&1 ||
	! grep -q 'networks cannot be cut' "$tmp/out"; then
	survived "networks are cut, too" --seconds "$seconds" --cuts yes
else
	skip 3 "$(sed -n 's/^run: //p' "$tmp/out" | tail -n 1)"
fi

done_testing
