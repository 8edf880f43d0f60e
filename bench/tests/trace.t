#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/trace runs, and refuses what it does not know.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

export WEFT_TOP_BUILDDIR=$build
"$top/bench/trace" --quick >"$tmp/out" 2>"$tmp/err"
ok "it runs" test $? = 0
ok "and says what an event takes" grep -qE '^trace: [0-9]+\.[0-9] ns per event$' "$tmp/out"
ok "an unknown option is refused" bash -c "! '$top/bench/trace' --loud 2>'$tmp/err'"
ok "and named" grep -qF -- '--loud' "$tmp/err"

done_testing
