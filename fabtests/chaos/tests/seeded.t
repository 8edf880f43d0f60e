#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/chaos/analyze-seeded with a few of its faults, and what it refuses.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

export WEFT_TOP_BUILDDIR=$build
seeded=$top/fabtests/chaos/analyze-seeded

ok "an unknown option is refused" bash -c "! '$seeded' --sometimes 2>'$tmp/err'"
ok "and named" grep -qF -- '"--sometimes"' "$tmp/err"
ok "an unknown fault is refused" bash -c "! '$seeded' flood 2>'$tmp/err'"
ok "and named, too" grep -qF '"flood"' "$tmp/err"
ok "there are at least 12 faults" test "$("$seeded" --list | wc -l)" -ge 12

timeout 600 "$seeded" kill crash stop count order never >"$tmp/out" 2>&1
status=$?
ok "six faults, each with the right verdict" test $status = 0 || diag "$(cat "$tmp/out")"
diag "$(tail -n 1 "$tmp/out")"

done_testing
