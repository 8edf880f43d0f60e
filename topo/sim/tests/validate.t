#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# topo/sim/validate: every formula and every rate is right, and what it does not know it
# says.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-.}/tests/tap.sh"

validate=$build/topo/sim/validate
for what in closed-forms max-min; do
	"$validate" "$what" >"$tmp/out"
	status=$?
	grep -E '^(WRONG|seed|validate)' "$tmp/out" | sed 's/^/# /'
	ok "$what" test $status -eq 0
	ok "$what looked at something" test "$(wc -l <"$tmp/out")" -gt 2
done
"$validate" nothing 2>/dev/null
ok "anything else is wrong usage" test $? -eq 2
done_testing
