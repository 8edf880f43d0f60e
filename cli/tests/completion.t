#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Completion for bash proposes what the command has: every subcommand, every option that its
# help lists, operations, values, and files where a file is wanted.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99
# shellcheck source=cli/completion/weft.bash
. "$top/cli/completion/weft.bash"

# proposed WORD...: the last one is what has been typed of the word in question.
proposed() {
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	_weft
	printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort -u
}

weft=$build/weft
has() {
	local want=$1

	shift
	proposed "$@" | grep -qxF -e "$want"
}

"$weft" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p' >"$tmp/commands"
{
	cat "$tmp/commands"
	printf '%s\n' help --help --version
} | LC_ALL=C sort >"$tmp/want"
ok "there are commands" test -s "$tmp/commands"
ok "all commands, and no other word" diff -u "$tmp/want" <(proposed "$weft" "")
ok "those that begin so" test "$(proposed "$weft" che)" = check-plans
ok "help proposes them as well" diff -u <(LC_ALL=C sort "$tmp/commands") <(proposed "$weft" help "")

while read -r command; do
	"$weft" "$command" --help 2>&1 | grep -oE -- '--[a-z][a-z-]+' | LC_ALL=C sort -u \
		>"$tmp/want"
	echo --help >>"$tmp/want"
	ok "the long options of $command" diff -u <(LC_ALL=C sort -u "$tmp/want") \
		<(proposed "$weft" "$command" --)
done <"$tmp/commands"

ok "operations of perf" has allreduce "$weft" perf all
ok "and that all of them exist" has all "$weft" perf a
ok "of tune" has broadcast "$weft" tune b
ok "what trace can do" test "$(proposed "$weft" trace "" | tr '\n' ' ')" = "analyze dump json "
ok "values of --bind" test "$(proposed "$weft" run -n 2 --bind "" | tr '\n' ' ')" = "core none "
ok "what stat can do" test "$(proposed "$weft" stat "")" = hang
ok "values of --what" test "$(proposed "$weft" plot --what b)" = bandwidth
ok "of --memory" test "$(proposed "$weft" perf --memory c)" = cuda
: >"$tmp/a file.svg"
ok "files where a file is wanted" has "$tmp/a file.svg" "$weft" topo --svg "$tmp/a"
ok "nothing where a number is wanted" test -z "$(proposed "$weft" run -n "")"
ok "behind the program of run: its own, where it is weft" has allreduce "$weft" run -n 2 \
	--bind core "$weft" perf allr
ok "else files" has "$tmp/a file.svg" "$weft" run -n 2 cat "$tmp/a"
ok "a command that there isn't gives nothing" test -z "$(proposed "$tmp/none/weft" "" | grep -vE -- "help|--version")"
bound() {
	[ "$(bash --norc -c '. "$1"; complete -p weft' _ "$top/cli/completion/weft.bash")" = \
		"complete -F _weft weft" ]
}
ok "it is bound to the name" bound

done_testing
