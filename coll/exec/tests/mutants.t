#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016 # perl wants its dollars
# Whether test_agree would find a decision that is made wrongly: agree.c is changed, one rule
# at a time, and the test, whose schedules are of fixed seeds, must find every change, and
# nothing without.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=tests/mutate.sh
. "$WEFT_TOP_SRCDIR/tests/mutate.sh"

command -v perl >/dev/null || skip_all "perl is not installed"
read -ra cc <<<"${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -I$build -I$top -I$top/include"
unit=$top/coll/exec/agree.c

# model SOURCE: the program with it in place of agree.c.
model() {
	"${cc[@]}" "$1" "$tmp/test_agree.o" -o "$tmp/model"
}

holds() {
	unset WEFT_SEED
	timeout 250 "$tmp/model" "$1" >"$tmp/out"
}

# found WORDS CHANGE...: agree.c so changed is found to be wrong.
found() {
	local words=$1 rc

	shift
	if ! mutate "$unit" "$tmp/mutant.c" "$@"; then
		ok "$words: each change is of one place" false
		return
	fi
	model "$tmp/mutant.c" || bail "the mutant does not compile: $words"
	holds 8000
	rc=$?
	diag "$(grep -m 1 -e 'repeat with' -e '^not ok' "$tmp/out" | sed 's/^# //')"
	ok "found: $words" test "$rc" = 1
}

"${cc[@]}" -c "$top/coll/exec/tests/test_agree.c" -o "$tmp/test_agree.o" ||
	bail "test_agree.c does not compile"
model "$unit" || bail "agree.c does not compile"
holds 2000
ok "the rules as they are hold" test "$?" = 0
found "half is enough" 's/> a->members \/ 2/>= a->members \/ 2/'
found "what was taken is ignored" 's/if \(msg->taken > a->best\)/if (0)/'
found "a promise is none" 's/if \(msg->ballot > a->promised\)/if (1)/'
found "what is taken is below a promise" 's/if \(msg->ballot >= a->promised\)/if (1)/'
found "who is lost has ended" \
	's/(void agree_lost.*?\n\{)/$1 agree_ended(a, member); return;/s' \
	's/(\nvoid agree_lost)/\nvoid agree_ended(struct agree *a, int32_t member);$1/'
found "numbers that somebody has used" 's/if \(number > a->number\)/if (0)/' \
	's/if \(msg->value.number > a->number\)/if (0)/'
found "of what was taken any is proposed" 's/if \(msg->taken > a->best\)/if (msg->taken)/'
found "who takes has promised nothing" 's/a->promised = a->taken = msg->ballot/a->taken = msg->ballot/'
found "a promise to an older ballot counts" \
	's/(a->state != AGREE_ASKING) \|\| msg->ballot != a->ballot/$1/'
found "who took an older proposal counts" \
	's/(a->state != AGREE_TAKING) \|\| msg->ballot != a->ballot/$1/'
found "the dead are heard" 's/if \(agree_bit\(a->ended, from\)\)/if (0)/'
found "who promises does not take over who has ended" \
	's/if \(agree_bit\(msg->value.list, i\) && i != a->self\)/if (0)/'
found "who ended after the question counts as if before" \
	's/agree_bit\(a->yes, i\) \|\| agree_bit\(a->without, i\)/agree_bit(a->yes, i) || agree_bit(a->ended, i)/'
found "who has ended is not said" 's/\tmemcpy\(msg.value.list, a->without.*?\n//'

done_testing
