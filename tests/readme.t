#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The program in README.md compiles as it is shown and prints what README.md says; the
# algorithms that it names are those there are.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

# block LANGUAGE: the first block of that language.
block() {
	awk -v open="\`\`\`$1" '
		$0 == open && !seen { inside = 1; seen = 1; next }
		/^```/ { inside = 0 }
		inside' "$top/README.md"
}

"$build/weft" info | awk '/^algorithms / { on = 1; next } !NF { on = 0 } on { print $1, $2 }' \
	>"$tmp/algorithms"
ok "weft info has algorithms" test -s "$tmp/algorithms"
for readme in README.md coll/algo/README.md; do
	sed -n '/^| collective | algorithms |$/,/^$/p' "$top/$readme" | awk -F ' *[|] *' '
		NR > 2 { for (n = split($3, name, ", "); n > 0; n--) print $2, name[n] }' |
		LC_ALL=C sort >"$tmp/named"
	ok "$readme names them" diff -u <(LC_ALL=C sort "$tmp/algorithms") "$tmp/named"
done

block c >"$tmp/sum.c"
ok "README.md has a program" grep -q '^int main(' "$tmp/sum.c"
ok "of about 30 lines" test "$(wc -l <"$tmp/sum.c")" -le 36

built() {
	# shellcheck disable=SC2086 # a command with flags
	${WEFT_TEST_CC:-cc -Wall -Wextra -Werror} -o "$tmp/sum" "$tmp/sum.c" \
		-I"$top/include" -L"$build/.libs" -Wl,-rpath,"$build/.libs" -lweft
}
if ! ok "it compiles as shown" built; then
	done_testing
fi

block text >"$tmp/want"
ok "README.md says what it prints" test -s "$tmp/want"
run() {
	FI_PROVIDER=weft FI_PROVIDER_PATH=$build/prov \
		timeout 60 "$build/weft" run -n 4 --no-prefix "$tmp/sum" >"$tmp/out"
}
ok "4 ranks run it over FI_PROVIDER=weft" run
ok "and it prints that" diff -u "$tmp/want" "$tmp/out"

done_testing
