#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# troubleshooting.md is keyed by messages that are in the code, as they are; variables of Weft that
# the pages here name are in the manual pages, and files that they name are there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tests/tap.sh" || exit 99

here=$top/docs

# Pieces between quotes of all sources but tests, "..." for what printf puts in, literals that
# the compiler joins joined. What lies between literals is code, and does no harm.
literals() {
	find "$top/coll" "$top/prov" "$top/cli" "$top/gpu" -name '*.[ch]' -not -path '*/tests/*' \
		-exec cat {} + | tr '\n\t' '  ' |
		sed -E 's/\\"/\x01/g; s/" *PRI[a-zA-Z0-9]+ *"/@/g; s/" +"//g; s/%%/\x02/g' |
		tr '"' '\n' |
		sed -E 's/%[-+ #0-9.*]*(hh|h|ll|l|z|j)?[a-zA-Z@]/.../g' | tr '\001\002' '"%' \
		>"$tmp/literals"
}
ok "sources are read" literals
ok "there are messages in them" test "$(wc -l <"$tmp/literals")" -gt 1000
# has MESSAGE: a literal begins with it.
has() {
	WANT=$1 awk 'index($0, ENVIRON["WANT"]) == 1 { found = 1; exit } END { exit !found }' \
		"$tmp/literals"
}
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n 's/^### `\(.*\)`$/\1/p' "$here/troubleshooting.md" >"$tmp/messages"
ok "troubleshooting.md has messages" test "$(wc -l <"$tmp/messages")" -gt 20
ok "every heading of the third level is one" test \
	"$(grep -c '^### ' "$here/troubleshooting.md")" = "$(wc -l <"$tmp/messages")"
ok "each of them once" is_empty "$(sort "$tmp/messages" | uniq -d)"
while IFS= read -r message; do
	ok "in the code: ${message:0:60}" has "$message"
done <"$tmp/messages"
not_there() {
	! has "WEFT_LINES is \"...\": it must be short, auto, on or off"
}
ok "seen: a message that is not" not_there

grep -ohE '\b(FI_)?WEFT_[A-Z_]+\b' "$here"/*.md "$top/examples/README.md" | LC_ALL=C sort -u >"$tmp/names"
ok "names are found" test -s "$tmp/names"
ok "they are of the manual pages or the headers" is_empty "$(while read -r name; do
	grep -qw -e "$name" "$top"/man/*.[137] "$top"/include/weft/*.h || echo "$name"
done <"$tmp/names")"
# shellcheck disable=SC2016 # as above
grep -ohE '`(\.\./)?[a-z]+/[A-Za-z_/.-]+\.(md|c|h)`' "$here"/*.md | tr -d '`' | sort -u >"$tmp/files"
ok "files that are named are there" is_empty "$(while read -r file; do
	[ -e "$top/$file" ] || echo "$file"
done <"$tmp/files")"

done_testing
