#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The program in README.md compiles as it is shown and prints what README.md says.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh"

# block LANGUAGE: the first block of that language.
block() {
	awk -v open="\`\`\`$1" '
		$0 == open && !seen { inside = 1; seen = 1; next }
		/^```/ { inside = 0 }
		inside' "$top/README.md"
}

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
