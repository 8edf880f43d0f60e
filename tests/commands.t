#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# make compile_commands.json names every file of the tree, with a command that compiles it.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

commands=$build/compile_commands.json
ok "make compile_commands.json" env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
	make -C "$build" -s compile_commands.json
count=$(tree_files "$top" | grep '\.c$' | grep -vc '^bench/coll_mpi\.c$')
ok "every file has its line" test "$(grep -c '^{"directory"' "$commands")" = "$count"
ok "brackets around them" test "$(head -c 1 "$commands")$(tail -n 1 "$commands")" = '[]'

# compiles FILE: by its command, without writing anything.
compiles() {
	local command

	command=$(sed -n "s|.*/$1\", \"command\": \"\\(.*\\)\"},*\$|\\1|p" "$commands")
	[ -n "$command" ] && (cd "$build" && eval "$command -fsyntax-only")
}
for file in prov/fi/cq.c prov/wire/shm/tests/test_ring.c coll/exec/engine.c \
	coll/tests/ranks.c cli/run_bind.c fabtests/own/util.c tests/fuzz/pkt.c; do
	if [ -e "$top/$file" ]; then
		ok "its command compiles $file" compiles "$file"
	fi
done

done_testing
