#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The programs of the tutorial compile without a warning, are right on 2, 3 and 4 ranks, and
# print what README.md here says.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tests/tap.sh" || exit 99

here=$top/examples

# printed NAME: what README.md says that examples/NAME.c prints, in its section.
printed() {
	awk -v head="\`$1.c\`" '
		/^## / { here = index($0, head) > 0 }
		/^```text$/ && here { inside = 1; next }
		/^```/ { inside = 0 }
		inside' "$here/README.md"
}
built() {
	# shellcheck disable=SC2086 # a command with flags
	${WEFT_TEST_CC:-cc} -Wall -Wextra -Werror -o "$tmp/$1" "$here/$1.c" -I"$top/include" \
		-L"$build/.libs" -Wl,-rpath,"$build/.libs" -lweft -lm
}
run() {
	FI_PROVIDER=weft FI_PROVIDER_PATH=$build/prov \
		timeout 90 "$build/weft" run -n "$2" --no-prefix "$tmp/$1" >"$tmp/$1.$2"
}
for source in "$here"/*.c; do
	name=$(basename "$source" .c)
	ok "$name.c compiles as it is" built "$name" || continue
	for ranks in 2 3 4; do
		ok "$name is right on $ranks ranks" run "$name" "$ranks"
	done
	printed "$name" >"$tmp/want"
	ok "README.md says what it prints" test -s "$tmp/want"
	ok "and it prints that" diff -u "$tmp/want" "$tmp/$name.4"
done
ok "there were four programs" test "$(find "$here" -name '*.c' | wc -l)" = 4

done_testing
