#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The model of a lane's end (failover.pml) holds in every interleaving, and fails when one
# of its rules is taken away.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v spin >/dev/null || skip_all "spin is not installed (Debian: spin)"
cc=$(command -v gcc || command -v cc) || skip_all "no C compiler"
cd "$tmp" || bail "no scratch directory"

# model [DEFINE]: what the checker says, in $tmp/out.
model() {
	spin ${1:+"-D$1"} -a "$top/prov/dqplb/tests/failover.pml" >out 2>&1 &&
		"$cc" -O0 -w -DSAFETY -o pan pan.c >>out 2>&1 || return
	timeout 60 ./pan -m100000 >>out 2>&1
}

# holds [DEFINE]: every state was seen, none is wrong.
holds() {
	if ! model "$@" || ! grep -q 'errors: 0$' out || grep -q 'max search depth too small' out; then
		cat out
		return 1
	fi
}

# fails DEFINE HOW: the checker finds it.
fails() {
	model "$1"
	if ! grep -q "$2" out || grep -q 'errors: 0$' out; then
		cat out
		return 1
	fi
}

ok "two deaths: nothing is written late, everything arrives and ends" holds
diag "$(grep 'states, stored' out)"
ok "three deaths: likewise" holds DEATHS=3
diag "$(grep 'states, stored' out)"
ok "C2: a report before the queue pair is quiet is found" \
	fails REPORT_EARLY 'assertion violated *!(raised)'
ok "C3: posting again without the report is found" \
	fails REPOST_EARLY 'assertion violated *!(raised)'
ok "A9: finishing at the lane's word is found" \
	fails FINISH_EARLY 'assertion violated .*arrived'
ok "C2: finishing while a lane may read is found" \
	fails FORGET_LANE 'assertion violated .*reading'
ok "C5: an acknowledgement that is lost for good is found" \
	fails RESEND_NOT 'invalid end state'

done_testing
