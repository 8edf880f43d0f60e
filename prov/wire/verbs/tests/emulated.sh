# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Runs programs of this folder over emulated devices; sourced behind tests/tap.sh. Gives
# `emulated PROGRAM SETUP FAULTS WORDS`: each line of what the program says becomes one of
# ours, with WORDS before it. Skips everything where there is no such library.

run=$top/fabtests/emuverbs/run
lib=${EMUVERBS_LIB:-$build/fabtests/emuverbs/.libs}
if [ ! -x "$build/prov/wire/verbs/tests/test_verbs" ]; then
	skip_all "built without headers of libibverbs"
elif [ ! -x "$run" ] || [ ! -e "$lib/libibverbs.so.1" ]; then
	skip_all "there is no emulated libibverbs"
fi

emulated() {
	local program=$build/prov/wire/verbs/tests/$1 words=$4 args=(--config "$2") line

	[ -z "$3" ] || args+=(--faults "$3")
	env WEFT_TOP_BUILDDIR="$build" "$run" "${args[@]}" timeout 300 "$program" \
		>"$tmp/out" 2>"$tmp/err"
	echo "rc $?" >>"$tmp/out"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$words: ${line#* - }" true ;;
		"not ok "*) ok "$words: ${line#* - }" false ;;
		"rc 0" | 1..*) ;;
		"rc "*) ok "$words: ends well ($line)" false || diag "$(tail -5 "$tmp/err")" ;;
		*) diag "${line#\# }" ;;
		esac
	done <"$tmp/out"
}
