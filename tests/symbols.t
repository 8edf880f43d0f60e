#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The libraries export what they must and nothing else, and need nothing that isn't there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

lib=$build/.libs/libweft.so
module=$build/prov/libweft-fi.so
[ -e "$lib" ] || bail "$lib was not built"
[ -e "$module" ] || bail "$module was not built"

# Names that a library defines for others; version nodes are not functions.
exported() {
	nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		LC_ALL=C sort -u
}

declared() {
	sed -n 's/^WEFT_API .*[ *]\(weft_[a-z0-9_]*\)(.*/\1/p' "$@" | LC_ALL=C sort
}

undefined() {
	LD_BIND_NOW=1 ldd -r "$1" 2>&1 | grep -E 'undefined symbol|not found'
}

grep -v '^#' "$top/tests/symbols.txt" >"$tmp/want"
exported "$lib" >"$tmp/got"
ok "libweft.so exports tests/symbols.txt" diff -u "$tmp/want" "$tmp/got"
declared "$top"/include/weft/*.h >"$tmp/declared"
ok "weft.h and its parts declare the same functions" diff -u "$tmp/want" "$tmp/declared"

exported "$module" >"$tmp/got"
ok "libweft-fi.so exports fi_prov_ini only" test "$(cat "$tmp/got")" = fi_prov_ini

if is_sanitized "$module"; then
	skip 2 "a sanitizer's run-time may come with the program only"
else
	ok "libweft.so lacks nothing" is_empty "$(undefined "$lib")"
	ok "libweft-fi.so lacks nothing" is_empty "$(undefined "$module")"
fi

# A library that lacks something is seen.
printf 'int nowhere(void);\nint there(void);\nint there(void)\n{\n\treturn nowhere();\n}\n' \
	>"$tmp/bad.c"
# shellcheck disable=SC2086 # a command with flags
if ${CC:-cc} -shared -fPIC -o "$tmp/bad.so" "$tmp/bad.c"; then
	ok "an undefined symbol is seen" test -n "$(undefined "$tmp/bad.so")"
	ok "an exported one too" test "$(exported "$tmp/bad.so")" = there
else
	bail "${CC:-cc} builds no shared library"
fi

done_testing
