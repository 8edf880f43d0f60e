#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC2016 # perl wants its dollars
# Whether the model would find a protocol that is wrong: the machines are changed, one rule
# at a time, and the schedules of fixed seeds must find every change, and nothing without.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=tests/mutate.sh
. "$WEFT_TOP_SRCDIR/tests/mutate.sh"

command -v perl >/dev/null || skip_all "perl is not installed"
read -ra cc <<<"${CC:-cc} -std=gnu11 -D_GNU_SOURCE -O1 -I$build -I$top -I$top/include"
ft=$top/coll/ft

# compiled OUT SOURCE
compiled() {
	"${cc[@]}" -c "$2" -o "$1"
}

objects=()
for unit in roster ft_wire member coord next blame rebuild; do
	compiled "$tmp/$unit.o" "$ft/$unit.c" || bail "$unit.c does not compile"
done
for unit in network actors world test_model; do
	compiled "$tmp/$unit.o" "$ft/tests/$unit.c" || bail "$unit.c does not compile"
	objects+=("$tmp/$unit.o")
done

# model MUTANT-UNIT: the program with $tmp/mutant.o in place of a unit.
model() {
	local unit parts=("${objects[@]}")

	for unit in roster ft_wire member coord next blame rebuild; do
		if [ "$unit" = "$1" ]; then
			parts+=("$tmp/mutant.o")
		else
			parts+=("$tmp/$unit.o")
		fi
	done
	"${cc[@]}" "${parts[@]}" -o "$tmp/model" -lpthread
}

holds() {
	timeout 250 "$tmp/model" --first --seed 1 --schedules "$1" >"$tmp/out"
}

# found WORDS UNIT CHANGE...: the unit so changed is found to be wrong, in $schedules.
schedules=1500
found() {
	local words=$1 unit=$2 rc

	shift 2
	if ! mutate "$ft/$unit.c" "$tmp/mutant.c" "$@"; then
		ok "$words: each change is of one place" false
		return
	fi
	compiled "$tmp/mutant.o" "$tmp/mutant.c" || bail "the mutant does not compile: $words"
	model "$unit" || bail "the mutant does not link: $words"
	holds "$schedules"
	rc=$?
	diag "$(sed -n 's/.*--trace: //p' "$tmp/out" | head -1)"
	ok "found: $words" test "$rc" = 1
}

model none || bail "the model does not link"
ok "nothing is found where nothing was changed" holds 300

found "G2: COMMIT is said before it is durable" coord \
	's/(\tif \(!ft_coord_save\(c, FT_SAVE_COMMIT\)\)\n\t\treturn;\n)(\tsay_all\(c, &c->d.active, FT_COMMIT\);\n)/$2$1/'
found "G2: START is said before it is durable" coord \
	's/(\tif \(!ft_coord_save\(c, FT_SAVE_EPOCH\)\)\n\t\treturn;)/\tsay_all(c, &c->d.active, FT_START);\n$1/'
found "G2: a vote is not waited for" coord \
	's/(static void count_votes.*?i = )0/${1}1/s'
found "G2: what counts is not taken over at START" member \
	's/\telse if \(!ft_commit_same\(\*commit, m->commit\)\)\n\t\ttake_commit\(m, commit\);\n//'
found "G2: COMMIT of a step that was not voted upon is taken" member \
	's/ && voted_for\(m, &msg->commit\)\)/)/'
found "G3: who voted yes decides alone" member \
	's/(say\(m, FT_STATUS\);\n)(\}\n\nbool ft_member_leave)/${1}if (good) {\nm->commit = (struct ft_commit){epoch, m->vote.step};\nm->work = FT_WORK_NONE;\ntell(m, FT_COMMITTED);\n}\n$2/'
found "G4: a promise is not kept" member \
	's/if \(msg->term < m->promised &&/if (0 &&/' \
	's/(\t\treturn;\n\t\}\n\t)if \(msg->term > m->promised\) \{/${1}if (1) {/'
found "G4: one member is a majority" rebuild \
	's{> roster->count / 2}{> 0}'
schedules=6000 found "G4: half is a majority" rebuild \
	's{> roster->count / 2}{>= (roster->count + 1) / 2}'
schedules=6000 found "G4: an epoch may leave more than half behind" next \
	's/return survivors\(c\) >= ft_half\(&c->d.active\)/return survivors(c) > 0/'
found "G4: who heard COMMIT does not bind" rebuild \
	's/p->commit.step > best.step/0/'
schedules=6000 found "G4: what was kept counts although others went on" rebuild \
	's/if \(p->replied \&\& \(p->prior.*?\)\)\n/if (0)\n/s'
schedules=20000 found "G4: epochs that may have been started are overlooked" rebuild \
	's/if \(ft_epoch_cmp\(roster->epoch, last->epoch\) >= 0/if (ft_epoch_same(roster->epoch, last->epoch)/' \
	's/if \(p->replied \&\& ft_epoch_cmp\(p->pending, last->epoch\) > 0 \&\& base/if (0 \&\& base/'
found "G5: averages divide by another count" member \
	's/m->live = m->active.count/m->live = m->active.count + 1/'
found "a newcomer's promise ends a coordinator" coord \
	's/else if \(p \&\& ft_roster_find\(&c->d.active, p->id\) >= 0\)/else/'
found "a group is let in, or left, in part" next \
	's/\tft_roster_whole_groups\(&c->next, c->attr.group_size\);\n//'
found "whoever leaves waits until all of its group do" next \
	's/stay >= c->attr.group_size/stay > 0/'
found "who leaves stays for an epoch more without its group" next \
	's/of_group >= c->attr.group_size/1/'

done_testing
