#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/instructions runs, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

command -v callgrind_annotate >/dev/null 2>&1 || skip_all "valgrind is not installed"
is_sanitized "$build/prov/libweft-fi.so" && skip_all "valgrind cannot run a sanitized build"

"$top/bench/instructions" --quick --provider weft >"$tmp/out" 2>"$tmp/err"
ok "it runs" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
last=$(tail -n 1 "$tmp/out")
ok "the last line is read" grep -qE '^instructions 8B tagged: weft [0-9]+$' <<<"$last"
# A program that counts its start as well is far above, an empty loop far below.
ok "the figure can be true" test "${last##* }" -gt 100 -a "${last##* }" -lt 20000
ok "functions are named" grep -qE '^ +[0-9.]+  [a-z_]+ \[libweft-fi\.so\]$' "$tmp/out"
ok "writes into shared memory are counted" \
	grep -qE '^write 8 B, shared +[0-9]+$' "$tmp/out"

"$top/bench/instructions" --quick --provider weft --operation tagged --size 16 \
	--threading safe --cq-data --directed --json >"$tmp/out" 2>"$tmp/err"
ok "another kind of message is counted" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "and said to be" grep -qE \
	'^instructions 16B tagged: weft [0-9]+ \(safe data directed\)$' "$tmp/err"
ok "also in the document" grep -q '"threading": "FI_THREAD_SAFE"' "$tmp/out"

"$top/bench/instructions" --quick --provider weft --operation tagged --size 8 --ignore \
	--posted 1000 --waiting 50 >"$tmp/out" 2>"$tmp/err"
ok "a crowd of receives and messages is passed by" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "and said" grep -qE \
	'^instructions 8B tagged: weft [0-9]+ \(ignore posted=1000 waiting=50\)$' "$tmp/out"

# A message that is pulled is there before its sender hears so.
"$top/bench/instructions" --wire uet --quick --provider weft --operation tagged --size 65536 \
	>"$tmp/out" 2>"$tmp/err"
ok "long messages by UDP" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
ok "are counted" grep -qE '^instructions 65536B tagged: weft [0-9]+$' "$tmp/out"

emu=$build/fabtests/emuverbs/.libs/libibverbs.so.1
if [ -e "$emu" ]; then
	WEFT_TOP_BUILDDIR=$build "$top/fabtests/emuverbs/run" --config 1x1 \
		"$top/bench/instructions" --wire verbs --quick --operation tagged,write \
		--size 8 >"$tmp/out" 2>"$tmp/err"
	ok "over emulated RDMA devices" test $? = 0 || diag "$(tail -n 5 "$tmp/err")"
	ok "without what the emulation does" grep -qE \
		'^instructions 8B tagged: weft [0-9]+ \(without the emulation\)$' "$tmp/out"
	ok "of which nothing is named" test -z "$(grep emu_post "$tmp/out")"
	WEFT_TOP_BUILDDIR=$build "$top/fabtests/emuverbs/run" --config 1x1 \
		"$top/bench/instructions" --wire verbs --quick --operation turn --size 8 \
		>"$tmp/turn" 2>"$tmp/err"
	ok "what is between a message and its reply" test $? = 0 ||
		diag "$(tail -n 5 "$tmp/err")"
	last=$(grep -oE '^instructions 8B turn: weft [0-9]+' "$tmp/turn")
	# A message more would be far above: its emulation alone is some thousand.
	ok "is counted by itself" test "${last##* }" -gt 100 -a "${last##* }" -lt 5000
	ok "and without the emulation" test -z "$(grep -F libibverbs "$tmp/turn")"
fi

done_testing
