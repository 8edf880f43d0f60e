#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft check-plans: its last line and exit status, what it refuses, and that a seed
# repeats a run. Proves every algorithm at ranks 1..64 on the way (in every shape of call up
# to 24); with WEFT_TEST_SHORT at fewer.
set -u

weft=${WEFT_TOP_BUILDDIR:-.}/weft
n=0
failed=0

ok() {
	local name=$1

	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		failed=1
	fi
}

# shellcheck disable=SC2317 # called by ok
status_is() {
	local want=$1

	shift
	"$@" >/dev/null 2>&1
	[ $? -eq "$want" ]
}

figures='^check-plans: [0-9]+ algorithms?, [1-9][0-9]* plan sets, 0 wrong, [0-9.]+ s$'

if [ -n "${WEFT_TEST_SHORT-}" ]; then
	ranks=(--ranks 1:17 --random 2 --max 40)
else
	ranks=(--ranks 1:24 --random 0)
	# All shapes at all of these take a minute and a half: weft check-plans by name.
	out=$("$weft" check-plans --ranks 25:64 --shapes 16 --random 6 --max 300)
	status=$?
	echo "${out//$'\n'/$'\n# '}" | sed '1s/^/# /'
	ok "F6: at ranks 25:64 some shapes of every algorithm are proven" \
		test $status -eq 0
fi
out=$("$weft" check-plans "${ranks[@]}")
status=$?
echo "${out//$'\n'/$'\n# '}" | sed '1s/^/# /'
ok "F6: every algorithm at ranks ${ranks[1]} is proven" test $status -eq 0
ok "the last line has the figures" grep -qE "$figures" <<<"${out##*$'\n'}"

run() {
	"$weft" check-plans --ranks 2:3 --random 2 --max 40 --seed 7 --algo 'ring$' \
		--jobs 2 | sed 's/[0-9.]* s$//'
}
ok "a seed repeats a run" test "$(run)" = "$(run)"
sets() {
	"$weft" check-plans --ranks 4 --random 0 --algo "$1" |
		sed -n 's/.* \([0-9]*\) plan sets.*/\1/p'
}
ok "--algo chooses" test "$(sets ring)" -lt "$(sets .)"
ok "--help is no error" status_is 0 "$weft" check-plans --help
ok "nor is -h" status_is 0 "$weft" check-plans -h
# shellcheck disable=SC2317 # called by ok
says() { # TEXT ARGUMENTS...: on stderr, in one line
	local text=$1 err

	shift
	err=$("$weft" check-plans "$@" 2>&1 >/dev/null)
	[[ $err == "weft check-plans: "*"$text"* ]] && [ "${err/$'\n'/}" = "$err" ]
}
ok "an algorithm that there isn't: those there are" says "there are: barrier/" --algo nosuch
ok "a number out of range: what is allowed" says "--jobs must be 1 to 1024" --jobs 1025
ok "an unknown option is named" says 'no option "--nonsense"' --nonsense
if [ -c /dev/full ]; then
	full() {
		"$weft" check-plans --ranks 2 --random 0 >/dev/full 2>&1
		[ $? -eq 1 ]
	}
	ok "output that cannot be written: status 1" full
fi
for bad in '--shapes 0' '--ranks 0:4' '--ranks 4:2' '--ranks x' '--ranks 1:2:3' '--random -1' \
	'--jobs 0' '--seed 0' '--algo [' '--algo nosuch' '--max 64' '--nonsense' 'more'; do
	# shellcheck disable=SC2086 # two words
	ok "refused: $bad" status_is 2 "$weft" check-plans $bad
done
echo "1..$n"
exit $failed
