#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# topo/sim/validate: every formula and every rate is right, and what it does not know it
# says.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-.}/tests/tap.sh" || exit 99

validate=$build/topo/sim/validate
for what in closed-forms max-min; do
	"$validate" "$what" >"$tmp/out"
	status=$?
	grep -E '^(WRONG|seed|validate)' "$tmp/out" | sed 's/^/# /'
	ok "$what" test $status -eq 0
	ok "$what looked at something" test "$(wc -l <"$tmp/out")" -gt 2
done
# Times of real runs depend on who else has the machine: that all are compared is looked at.
WEFT_TOP_BUILDDIR=$build timeout 240 "$validate" real --ranks 4 --rate 400 --bytes 65536 \
	--rounds 1 >"$tmp/out" 2>"$tmp/err"
status=$?
if [ $status -eq 77 ]; then
	skip 2 "$(tail -n 1 "$tmp/err")"
else
	ok "real runs are compared" test "$(grep -c 'measured .* simulated' "$tmp/out")" = 9 ||
		diag "$(tail -n 3 "$tmp/err" "$tmp/out")"
	ok "with terms of two ranks" grep -q '^terms: latency ' "$tmp/out"
fi
for bad in '--ranks 1' '--ranks 17' '--rate 0' '--bytes x' '--rounds 0' '--nonsense'; do
	# shellcheck disable=SC2086 # two words
	"$validate" real $bad >/dev/null 2>"$tmp/err"
	ok "real: refused: $bad" grep -qe "^topo/sim/real: .*${bad%% *}" "$tmp/err"
done
FI_PROVIDER_PATH=$tmp WEFT_TOP_BUILDDIR=$build "$validate" real --provider weft >/dev/null 2>"$tmp/err"
ok "real: a provider that was not built is said" grep -qF "topo/sim/real: no libweft-fi.so in $tmp" \
	"$tmp/err"
"$validate" nothing 2>/dev/null
ok "anything else is wrong usage" test $? -eq 2
done_testing
