# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # of tap.sh: top, build, tmp
# What the scripts of this folder share; sourced behind tests/tap.sh. Skips everything where
# there is no emulated library: it is built where configure found infiniband/verbs.h.

run=$top/fabtests/emuverbs/run
lib=${EMUVERBS_LIB:-$build/fabtests/emuverbs/.libs}
[ -e "$lib/libibverbs.so.1" ] ||
	skip_all "there is no emulated libibverbs: built without infiniband/verbs.h"
export WEFT_TOP_BUILDDIR=$build

# weft_absent: says why the weft command can't be asked here; false: it can. A build that makes
# only the provider and its tests hasn't it. It loads the provider as a module, and a sanitizer's
# own library would have to be loaded before everything else; the provider's own tests are
# sanitized.
weft_absent() {
	if [ ! -x "$build/weft" ]; then
		echo "there is no weft command: it wasn't built here"
	elif is_sanitized "$build/prov/libweft-fi.so"; then
		echo "libfabric cannot load a module that was built with sanitizers"
	else
		return 1
	fi
}

# own_need NAME: a program of fabtests/own that the script runs.
own_need() {
	[ -x "$build/fabtests/own/$1" ] || bail "fabtests/own/$1 is not built: make check TESTS="
}

# over DEVICES COMMAND...: over what these lines of a setup say. What the command says is in
# $tmp/out, with its status in a last line "rc N", and its errors are in $tmp/log.
over() {
	local status

	printf 'emuverbs 1\n%s\n' "$1" >"$tmp/setup"
	shift
	"$run" --config "$tmp/setup" timeout 200 "$@" >"$tmp/out" 2>"$tmp/log"
	status=$?
	echo "rc $status" >>"$tmp/out"
	return $status
}

# What came of it, for a test that failed; false.
shown() {
	tail -n 30 "$tmp/out" "$tmp/log"
	false
}
