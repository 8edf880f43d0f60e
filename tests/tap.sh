# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# TAP for scripts: sourced, gives ok, is_empty, skip, bail and done_testing, and a
# scratch directory $tmp that goes away with the script.

# What tools say is read, and figures are: in no other language than here.
export LC_ALL=C
tap_run=0
tap_failed=0
top=${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/.." && pwd)}
build=${WEFT_TOP_BUILDDIR:-$top/build}
# A library below libfabric writes NAME.btr where it stands when a process dies of a fault.
export IPATH_NO_BACKTRACE=1
tmp=$(mktemp -d) || exit 99
# In this process alone: bash runs the trap of its parent in a child, too, which a signal
# ends before it has become what it was forked for. The status of [ may come out as 127
# there: "or" would remove the folder.
trap '[ $BASHPID = $$ ] && rm -rf "$tmp"' EXIT

# ok WORDS COMMAND...: good when the command succeeds; its output is shown when not.
ok() {
	local words=$1 out

	shift
	tap_run=$((tap_run + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tap_run - $words"
		return 0
	fi
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_run - $words"
	[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/# /'
	return 1
}

# is_empty TEXT: for ok; shows the text.
is_empty() {
	[ -z "$1" ] || {
		printf '%s\n' "$1"
		return 1
	}
}

diag() {
	printf '%s\n' "$*" | sed 's/^/# /'
}

# skip COUNT WHY
skip() {
	local i

	for ((i = 0; i < $1; i++)); do
		tap_run=$((tap_run + 1))
		echo "ok $tap_run # SKIP $2"
	done
}

# skip_all WHY: the whole script.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

bail() {
	echo "Bail out! $1"
	exit 99
}

done_testing() {
	echo "1..$tap_run"
	[ $tap_failed = 0 ]
	exit
}

# Whether the module needs a sanitizer's run-time, which only a program may bring.
is_sanitized() {
	nm -D "$1" | grep -qE ' [Uw] __(asan|ubsan|tsan|sanitizer)_'
}

# The files of the tree, relative to $1: what git tracks, or, in an unpacked tarball,
# everything outside build directories.
tree_files() {
	(
		cd "$1" || exit 1
		if [ -e .git ] && git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
			git ls-files
		else
			find . \( -path './build*' -o -path './_build*' \
				-o -path './autom4te.cache' -o -name 'Makefile.in' \
				-o -name configure -o -name aclocal.m4 \
				-o -name 'config.h.in' -o -path './m4/l*' \) -prune \
				-o -type f -print | sed 's,^\./,,'
		fi
	)
}
