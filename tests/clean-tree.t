#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Building leaves nothing in the source tree that git does not ignore. ./quickstart
# check takes the state before it does anything (WEFT_TEST_TREE_BEFORE) and compares with
# that; without it, changes of a developer cannot be told from those of the build.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

[ -e "$top/.git" ] || skip_all "not a git checkout"
command -v git >/dev/null || skip_all "git is not installed"
now=$(git -C "$top" status --porcelain) || skip_all "git does not work here"

if [ -n "${WEFT_TEST_TREE_BEFORE-}" ]; then
	ok "the tree is as it was" diff -u "$WEFT_TEST_TREE_BEFORE" <(printf '%s' "${now:+$now
}")
elif [ -n "$now" ]; then
	skip 1 "the tree has changes of your own; ./quickstart check can tell them apart"
else
	ok "the tree is clean" is_empty "$now"
fi
for f in configure aclocal.m4 config.h.in Makefile.in build-aux/x build/x m4/libtool.m4; do
	ok "git ignores $f" git -C "$top" check-ignore -q "$f"
done

done_testing
