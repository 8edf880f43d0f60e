#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# sessions.md is what capture writes: the same headings, words and commands, and, of what the
# commands say, what is the same wherever they run. Each command of weft has a session.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

page=$top/docs/sessions/sessions.md
CAPTURE_LINES=1000000 "$top/docs/sessions/capture" "$build" >"$tmp/now" 2>"$tmp/errors"
status=$?
ok "all commands run" test "$status" = 0
[ "$status" = 0 ] || diag "$(cat "$tmp/errors")"

numbers() {
	sed -E 's/[0-9][0-9a-f.]*/N/g'
}
# All but what the commands say.
frame() {
	awk '/^```/ { inside = !inside } !inside || /^\$ /' "$1" | numbers
}
ok "headings, words and commands are those of the page" diff -u <(frame "$page") <(frame "$tmp/now")

# stable NAME FILE: what is the same everywhere of the session of that command.
stable() {
	local pattern

	awk -v head="## weft $1" '/^## / { inside = ($0 == head) } inside' "$2" >"$tmp/session"
	pattern=$(sed -n 's/^<!-- stable: \(.*\) -->$/\1/p' "$tmp/session")
	[ -n "$pattern" ] || return
	awk '/^```/ { inside = !inside; next } inside && !/^\$ /' "$tmp/session" | numbers |
		grep -oE -e "$pattern" | tr -s ' ' | sort -u
}
"$build/weft" --help 2>&1 | sed -n 's/^  \([a-z-]*\)  .*/\1/p' >"$tmp/commands"
ok "there are commands" test -s "$tmp/commands"
while read -r command; do
	stable "$command" "$page" >"$tmp/page"
	ok "weft $command has a session" test -s "$tmp/page"
	stable "$command" "$tmp/now" >"$tmp/again"
	ok "weft $command says the same again" is_empty "$(comm -23 "$tmp/page" "$tmp/again")"
done <"$tmp/commands"

done_testing
