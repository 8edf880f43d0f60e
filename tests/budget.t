#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Files stay under 800 lines and functions under 100: what is longer does two things.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

file_limit=800
function_limit=100
# A function above this is worth a look, not an error.
function_wish=60

is_source() {
	grep -E '\.([ch]|awk|m4|mk|sh|t)$|^(quickstart|configure\.ac|Makefile\.am|\.ci/run|fabtests/upstream|bench/[a-z0-9]+)$'
}

long_files() {
	local f n

	tree_files "$1" | is_source | while read -r f; do
		n=$(wc -l <"$1/$f")
		[ "$n" -lt $file_limit ] || echo "$f: $n lines"
	done
}

long_functions() {
	(
		cd "$1" || exit 1
		tree_files . | grep '\.[ch]$' | tr '\n' '\0' |
			xargs -0 -r awk -v limit="$2" -f "$top/tests/budget.awk"
	)
}

ok "files are under $file_limit lines" is_empty "$(long_files "$top")"
ok "functions are under $function_limit lines" \
	is_empty "$(long_functions "$top" $function_limit)"
wish=$(long_functions "$top" $((function_wish + 1)))
[ -z "$wish" ] || diag "functions of more than $function_wish lines:"$'\n'"$wish"

mkdir "$tmp/bad"
{
	printf 'int f(void)\n{\n'
	seq 1 $((function_limit)) | sed 's/^/\tx = /'
	printf '}\n'
} >"$tmp/bad/f.c"
ok "a function that is too long is seen" \
	test "$(long_functions "$tmp/bad" $function_limit | wc -l)" = 1
ok "a file that is short enough is not" is_empty "$(long_files "$tmp/bad")"
seq 1 $file_limit >"$tmp/bad/g.h"
ok "a file that is too long is seen" test "$(long_files "$tmp/bad")" = "g.h: $file_limit lines"

done_testing
