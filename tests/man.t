#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The manual pages describe what is there: every function, every command with its
# options, every variable; and nothing that isn't.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

# Names that a pattern finds in a file, sorted.
names() {
	grep -aohE "$1" "${@:2}" | LC_ALL=C sort -u
}

grep -v '^#' "$top/tests/symbols.txt" >"$tmp/functions"
names '^\.F[no] weft_[a-z0-9_]+' "$top/man/weft.3" | sed 's/.* //' | LC_ALL=C sort -u \
	>"$tmp/described"
ok "weft(3) has the functions of the library" diff -u "$tmp/functions" "$tmp/described"

names 'WEFT_(SUCCESS|ERR_[A-Z]+)' "$top/include/weft/weft.h" >"$tmp/results"
names 'WEFT_(SUCCESS|ERR_[A-Z]+)' "$top/man/weft.3" >"$tmp/described"
ok "weft(3) has all results" diff -u "$tmp/results" "$tmp/described"

names '"WEFT_[A-Z_]+"' "$top"/coll/{api,boot,comm,exec}/*.[ch] "$top"/cli/*.[ch] | tr -d '"' >"$tmp/variables"
sed -n 's/^\.It Ev \(WEFT_[A-Z_]*\).*/\1/p' "$top/man/weft.3" "$top/man/weft.1" |
	LC_ALL=C sort -u >"$tmp/described"
ok "weft(1) and weft(3) have the variables" diff -u "$tmp/variables" "$tmp/described"

"$build/weft" --help >"$tmp/help" 2>&1
sed -n 's/^  \([a-z-]*\)  .*/\1/p' "$tmp/help" | LC_ALL=C sort >"$tmp/commands"
sed -n 's/^\.Ss weft \([a-z-]*\)$/\1/p' "$top/man/weft.1" | LC_ALL=C sort >"$tmp/described"
ok "weft(1) has the commands" diff -u "$tmp/commands" "$tmp/described"

# The part of weft(1) about one command.
part() {
	awk -v head=".Ss weft $1" '/^\.S[sh] / { inside = ($0 == head) } inside' "$top/man/weft.1"
}
while read -r command; do
	"$build/weft" "$command" --help 2>&1 | grep -oE -- '--[a-z][a-z-]+' | grep -v '^--help$' |
		LC_ALL=C sort -u >"$tmp/options"
	part "$command" | grep '^\.It Fl ' | grep -oE 'Fl -[a-z][a-z-]+' | sed 's/Fl -/--/' |
		LC_ALL=C sort -u >"$tmp/described"
	ok "weft(1) has the options of $command" diff -u "$tmp/options" "$tmp/described"
done <"$tmp/commands"

if is_sanitized "$build/prov/libweft-fi.so"; then
	skip 1 "fi_info cannot load a module that was built with sanitizers"
elif command -v fi_info >/dev/null; then
	FI_PROVIDER_PATH=$build/prov fi_info -g weft 2>/dev/null >"$tmp/env"
	names 'FI_WEFT_[A-Z_]+' "$tmp/env" >"$tmp/variables"
	sed -n 's/^\.It Ev \(FI_WEFT_[A-Z_]*\).*/\1/p' "$top/man/fi_weft.7" |
		LC_ALL=C sort -u >"$tmp/described"
	ok "fi_weft(7) has the variables of the provider" \
		diff -u "$tmp/variables" "$tmp/described"
else
	skip 1 "fi_info is not installed"
fi

done_testing
