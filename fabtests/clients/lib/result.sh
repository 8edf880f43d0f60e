# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Results of the tests: counted, and shown with what was said when one failed. Variables
# of the script that sources this: timeout, scratch.
# shellcheck disable=SC2154

count_passed=0 count_failed=0 count_same=0

# result_put pass|fail|same TEST TENTHS [NOTE]
result_put()
{
	case $1 in
	pass) count_passed=$((count_passed + 1)) ;;
	fail) count_failed=$((count_failed + 1)) ;;
	same) count_same=$((count_same + 1)) ;;
	esac
	printf '%-44s %-4s %4d.%d s%s\n' "$2" "$1" $(($3 / 10)) $(($3 % 10)) \
		"${4:+  ($4)}"
}

# In tenths of a second: bash has no floating point.
clock()
{
	local t=$EPOCHREALTIME

	t=${t/[.,]/}
	say $((t / 100000))
}

status_text()
{
	case $1 in
	0) say 'exit 0' ;;
	99) say 'it tested nothing, or another provider' ;;
	124 | 137) say "no end within $timeout s, or killed" ;;
	*) if [ "$1" -gt 128 ]; then say "signal $(($1 - 128))"; else say "exit $1"; fi ;;
	esac
}

# log_show FILE: the end tells most; a loop of errors must not drown the other tests.
log_show()
{
	grep -v '_ofi_component\.c:' "$1" | tail -n 30 | sed 's/^/    | /'
}
