#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# algorithms.md and protocols.md have a section for each that the command lists, and no other, in
# its order and with its words; what they count is what the simulator counts; what they say of
# the model and of the library's own choice is so.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tests/tap.sh" || exit 99

page=$top/docs/algorithms.md
unset WEFT_TUNE WEFT_ALGO FI_PROVIDER
"$build/weft" info --algorithms >"$tmp/info"
# collective: algorithm, and its line.
awk 'NR > 1 && !NF { exit }
	NR > 1 { name = $1 ": " $2; sub(/^ *[^ ]+ +[^ ]+ +/, ""); print name "\n" $0 }' \
	"$tmp/info" >"$tmp/listed"
ok "it lists algorithms" test "$(wc -l <"$tmp/listed")" -gt 2
sed -n 's/^### //p; s/^> //p' "$page" >"$tmp/said"
ok "algorithms.md has them, with these words" diff -u "$tmp/listed" "$tmp/said"

# Sections in one line each: name, tab, text.
awk '/^## / { name = "" }
	/^### / { if (text) print text; name = substr($0, 5); text = name "\t"; next }
	name { text = text $0 " " } END { print text }' "$page" >"$tmp/sections"
ok "each section says all there is to say" is_empty "$(grep -vE \
	$'\t.*\*\*Idea\*\*: .*\*\*Source\*\*: .*\*\*Model\*\*: .*\*\*Chosen\*\*: .*\*\*Limits\*\*: ' \
	"$tmp/sections" | cut -f1)"
# having PATTERN: names of the sections that have it.
having() {
	grep -E -e $'\t.*'"$1" "$tmp/sections" | cut -f1 | sort
}

sed -n 's/^\t{"\([a-z_]*\)", "\([a-z-]*\)", [a-z_]*_cost},$/\1: \2/p' "$top/coll/tune/cost.c" |
	sort >"$tmp/modelled"
ok "the model knows algorithms" test -s "$tmp/modelled"
# shellcheck disable=SC2016 # backquotes of Markdown
ok "algorithms.md has terms for those, and no other" diff -u "$tmp/modelled" \
	<(having '\*\*Model\*\*: `|\*\*Model\*\*: the ')

# What is chosen for some number of ranks and some length; forms with lengths of their own are
# not asked about.
awk '/^chosen/ { on = 1; next } on && /^  / { for (i = 2; i <= NF; i++) { gsub(/,/, "", $i)
	if ($i ~ /^[a-z][a-z-]+$/ && $i !~ /^(to|up|then)$/) print $1 ": " $i } }' "$tmp/info" |
	sort -u >"$tmp/chosen"
ok "some are chosen" test -s "$tmp/chosen"
ok "algorithms.md says of no other that it is" diff -u "$tmp/chosen" \
	<(having '\*\*Chosen\*\*: (by|wherever) ' | grep -v '^[a-z_]*\(v\|dynamic\): ')

# Messages and bytes of a simulation: of the tiers all, they are parts of one network.
counted() {
	"$build/weft" sim "$1" --ranks 16 --bytes 64K --algorithm all --json \
		--fabric "$top/topo/examples/published.map" >"$tmp/sim" || return
	awk -v coll="$1" '
		/"algorithm":/ { name = $2; gsub(/[",]/, "", name); bytes = 0 }
		/"messages":/ { messages = $2 + 0 }
		/"tiers":/ { tiers = 1 }
		tiers && /"bytes":/ { bytes += $2 }
		tiers && /^ *\]/ { tiers = 0; print coll ": " name ": " messages " messages, " bytes " bytes" }' \
		"$tmp/sim"
}
while read -r coll; do
	counted "$coll" >"$tmp/counted"
	ok "$coll: the simulator counts" test -s "$tmp/counted"
	ok "$coll: algorithms.md has its counts" diff -u "$tmp/counted" <(awk -v coll="$coll" '
		/^### / { name = substr($0, 5) } /\*\*Counted\*\*/ && index(name, coll ": ") == 1 {
			sub(/.*\*\*Counted\*\*: /, ""); print name ": " $0 }' "$page")
done < <(cut -d: -f1 "$tmp/chosen" | sort -u)

FI_PROVIDER_PATH=$build/prov "$build/weft" info --protocols >"$tmp/protocols"
awk '/^[^ ]/ { path = $0; sub(/  .*/, "", path); sub(/ (up to|above) [0-9].*/, "", path) }
	/^    / { sub(/^ */, ""); print path ": " $0 }' "$tmp/protocols" >"$tmp/listed"
ok "weft info --protocols lists some" test -s "$tmp/listed"
ok "protocols.md has them, with these words" diff -u "$tmp/listed" \
	<(sed -n 's/^### //p' "$top/docs/protocols.md")
ok "each of them says all there is to say" test "$(grep -cE '^- \*\*(What|When|Costs)\*\*: ' \
	"$top/docs/protocols.md")" = $((3 * $(wc -l <"$tmp/listed")))

done_testing
