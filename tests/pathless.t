#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# No file of the tree names places of the machine that it was written on, servers that
# packages come from, or work that was left over.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

# Written so that this file does not find itself.
leftover="(^|[^A-Za-z0-9_])(TO""DO|FIX""ME|XX""X|HA""CK)([^A-Za-z0-9_]|$)"
leftover="$leftover|for n""ow[^a-z]|^(<<<<<<<|>>>>>>>) "
place="/(ho""me|ro""ot|Us""ers)/"
server="(deb|security)\.deb""ian\.org|archive\.ubu""ntu\.com|pypi\.o""rg"

# Prints what is found below a directory.
found() {
	(
		cd "$1" || exit 1
		tree_files . | tr '\n' '\0' |
			xargs -0 grep -nHIE "$leftover|$place|$server" --
		# Where the tree lies right now is such a place too. A name that is no
		# more than a usual folder says nothing.
		case $2 in
		/ | /tmp | /usr | /usr/src | /var/tmp | /opt | /srv | /src) ;;
		*) tree_files . | tr '\n' '\0' | xargs -0 grep -nHIF "$2/" -- ;;
		esac
	)
}

ok "nothing of the kind" is_empty "$(found "$top" "$top")"

bad() {
	rm -rf "$tmp/bad"
	mkdir "$tmp/bad"
	printf '%s\n' "$2" >"$tmp/bad/x.c"
	ok "seen: $1" test "$(found "$tmp/bad" /some/where | wc -l)" = 1
}
bad "a note of work to do" "/* TO""DO: more */"
bad "a fault that is known" "// FIX""ME"
bad "a home directory" "-I/ho""me/me/include"
bad "where the tree lies" "cat /some/where/file"
bad "a package server" "http://deb.deb""ian.org/"
bad "a merge that was not finished" "<<<<<<< HEAD"

printf 'mktemp /tmp/weft.XXXXXX\n' >"$tmp/bad/x.c"
ok "a template of mktemp is none of these" is_empty "$(found "$tmp/bad" /some/where)"

done_testing
