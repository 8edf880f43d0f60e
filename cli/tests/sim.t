#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft sim: what it prints and writes, and how it refuses maps and arguments.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-.}/tests/tap.sh" || exit 99

weft=$build/weft
cat >"$tmp/map" <<'EOF'
weft-fabric 1
rail r0 80G
ranks 2
grid n[01-16] 2/2/2
tier host latency=1us
tier rack latency=2us
tier zone latency=3us
tier building latency=4us over=2
tier far latency=5us over=4 mesh
EOF

"$weft" sim allgather --algorithm ring,ffbruck --ranks 8,32 --bytes 1M --fabric "$tmp/map" \
	--csv "$tmp/csv" --explain >"$tmp/out" 2>"$tmp/err"
ok "two algorithms at two sizes" test $? -eq 0
ok "nothing on stderr where nobody watches" is_empty "$(cat "$tmp/err")"
ok "four results" test "$(grep -c '^allgather ' "$tmp/out")" = 4
ok "the tiers are explained" grep -q 'in two buildings .*latency .*pair by pair' "$tmp/out"
ok "and what limits" grep -q 'the busiest link .* of tier ' "$tmp/out"
ok "the CSV has a head and a line each" test "$(wc -l <"$tmp/csv")" = 5
ok "with as many fields" test "$(awk -F, '{ print NF }' "$tmp/csv" | sort -u)" = 15
"$weft" sim allgather --algorithm ring,ffbruck --ranks 8,32 --bytes 1M --fabric "$tmp/map" \
	--csv "$tmp/again" >/dev/null
ok "the same input gives the same times" diff <(cut -d, -f1-11 "$tmp/csv") \
	<(cut -d, -f1-11 "$tmp/again")
"$weft" sim allgather --algorithm ring,ffbruck --ranks 4,8,16,32 --bytes 1M \
	--fabric "$tmp/map" --svg "$tmp/svg" >/dev/null
ok "a picture has a curve each" test "$(grep -c '<polyline' "$tmp/svg")" = 2
ok "with all points" test "$(grep -c '<circle' "$tmp/svg")" = 8
ok "on a white page" grep -q 'fill="#ffffff"' "$tmp/svg"
if command -v xmllint >/dev/null; then
	ok "well-formed" xmllint --noout "$tmp/svg"
else
	skip 1 "xmllint is not installed"
fi
ok "a picture that cannot be written: status 1" bash -c \
	"'$weft' sim barrier --ranks 8 --fabric '$tmp/map' --svg /no/such/file 2>/dev/null; test \$? -eq 1"
"$weft" sim barrier --ranks 32 --fabric "$tmp/map" >"$tmp/out"
ok "a barrier needs no length, and no algorithm" grep -q '^barrier ' "$tmp/out"
"$weft" sim allreduce --ranks 32 --bytes 140G --fabric "$tmp/map" --explain >"$tmp/out"
ok "no algorithm, very long: by formula" test $? -eq 0
for what in 'inside a fast domain  *2 ranks' 'across domains  *16 ranks' \
	'hierarchical  *32 ranks' 'flat, around all  *32 ranks'; do
	ok "it says: ${what%%  *}" grep -qE "$what .* us  *limit: (ports|links|latency) of " \
		"$tmp/out"
done
ok "and the terms of each tier" test "$(grep -c '^  terms, .* L .* o .* 1/G ' "$tmp/out")" = 5
"$weft" sim allreduce --algorithm all --ranks 32 --bytes 64K --fabric "$tmp/map" >"$tmp/out"
ok "all algorithms that can" test "$(grep -c '^allreduce ' "$tmp/out")" -ge 5

# What is slow, dead, late, and what else runs. time NAME ARGUMENTS...: of the first result.
time_of() {
	"$weft" sim allgather --algorithm ring --bytes 1M --fabric "$tmp/map" --csv "$tmp/one" "$@" \
		>/dev/null && sed -n 2p "$tmp/one" | cut -d, -f6
}
# shellcheck disable=SC2317 # called by ok
longer() { # FACTOR A B: B is at least so many times A
	awk -v f="$1" -v a="$2" -v b="$3" 'BEGIN { exit !(a > 0 && b >= f * a) }'
}
well=$(time_of --ranks 30)
ok "a slow host" longer 3 "$well" "$(time_of --ranks 30 --slow n02=0.25)"
ok "a slow link of two buildings" longer 1.5 "$well" \
	"$(time_of --ranks 30 --slow b1/-/-:b2/-/-=0.01)"
ok "a dead host has no ranks: as well with a spare one" test -n "$(time_of --ranks 30 --dead n02)"
ok "a dead rail" longer 1 "$(time_of --ranks 30 --slow n02=0.9)" \
	"$(sed 's/^rail r0.*/rail r0 40G\nrail r1 40G/' "$tmp/map" >"$tmp/two" &&
		time_of --ranks 30 --fabric "$tmp/two" --dead n02:r1)"
cat >"$tmp/mesh" <<'END'
weft-fabric 1
rail r0 80G
grid n[01-16] 4/1/1
tier rack latency=2us
tier far latency=5us rate=240G mesh
END
plain=$(time_of --ranks 16 --fabric "$tmp/mesh")
dead=$(time_of --ranks 16 --fabric "$tmp/mesh" --dead b1/z1/k1:b2/z1/k1)
ok "a dead link is gone around, which takes longer" longer 1.001 "$plain" "$dead"
ok "in full the same" test "$dead" = \
	"$(time_of --full --ranks 16 --fabric "$tmp/mesh" --dead b1/z1/k1:b2/z1/k1)"
"$weft" sim allgather --algorithm ring --ranks 16 --bytes 1M --fabric "$tmp/mesh" --explain \
	--dead b1/z1/k1:b2/z1/k1 >"$tmp/out"
ok "and said so" grep -q 'pair by pair, 2 of them dead' "$tmp/out"
work=$(time_of --ranks 8 --gap 10)
ok "a rank that takes twice as long for what it does" longer 1.5 "$work" \
	"$(time_of --ranks 8 --gap 10 --lag 3=20)"
ok "ranks that are late, two of them" longer 1 0.0005 \
	"$(time_of --ranks 8 --late 3=500 --late 4=100)"

"$weft" sim alltoall --algorithm direct --ranks 32 --bytes 1M --fabric "$tmp/map" --strided 2 \
	--json --csv "$tmp/two.csv" >"$tmp/json"
ok "two groups at once, as JSON" "$build/cli/tests/json_schema" \
	"$top/cli/schema/sim.schema.json" "$tmp/json"
ok "each is said" test "$(grep -c '"alone_s"' "$tmp/json")" = 2
ok "a line each in the CSV, behind that of all" test "$(cut -d, -f13 "$tmp/two.csv" | tr '\n' ' ')" = "job 0 1 2 "
ok "which hold each other up" bash -c \
	"awk -F, 'NR > 2 && \$6 > 1.2 * \$15 { n++ } END { exit n != 2 }' '$tmp/two.csv'"
ok "another operation beside it" grep -qE \
	'^  job 2: broadcast chain, 4M, ranks 16-30/2, from 100.000 us: .*, alone .* \(1.00 times\)' \
	<("$weft" sim allreduce --ranks 32 --on 0-15 --bytes 1M --fabric "$tmp/map" \
		--also broadcast,bytes=4M,algorithm=chain,ranks=16-30/2,begin=100)
"$weft" sim barrier --ranks 32 --groups 16 --also barrier,ranks=0-31/3 --fabric "$tmp/map" >"$tmp/out"
ok "many: the first and the last" test "$(grep -c '^  job ' "$tmp/out")" = 2
"$weft" sim allgather --algorithm ring --ranks 8,16 --bytes 1K,1M --fabric "$tmp/map" --json \
	--slow n02=0.5 --dead n05 --late 1=3 --lag 2=2 --gap 1 >"$tmp/json"
ok "JSON of several sizes, with what is wrong" "$build/cli/tests/json_schema" \
	"$top/cli/schema/sim.schema.json" "$tmp/json"

# A torus; one that is switched to the job's hosts.
cat >"$tmp/torus" <<'END'
weft-fabric 1
rail r0 80G
grid n[01-16] 1/1/1
tier rack latency=2us rate=80G torus=4x4
END
plain=$(time_of --ranks 16 --fabric "$tmp/torus")
ok "a torus: in full the same" test "$plain" = "$(time_of --full --ranks 16 --fabric "$tmp/torus")"
for dead in "" "--dead n02 --dead n07"; do
	# shellcheck disable=SC2086 # words
	"$weft" sim alltoall --algorithm direct --ranks 14 --bytes 1M --fabric "$tmp/torus" $dead \
		--csv "$tmp/around${dead:+.dead}" >/dev/null
done
ok "around dead hosts it takes longer" longer 1.2 "$(sed -n 2p "$tmp/around" | cut -d, -f6)" \
	"$(sed -n 2p "$tmp/around.dead" | cut -d, -f6)"
sed 's/^tier rack.*/& optical=10ms/' "$tmp/torus" >"$tmp/optical"
"$weft" sim allgather --algorithm ring --ranks 12 --shape 4x3 --bytes 1M --dead n02 --explain \
	--fabric "$tmp/optical" >"$tmp/out"
ok "switched for a job of any shape" grep -q 'once: 10000.000 us until circuits' "$tmp/out"
ok "whose links are told" grep -q 'to its neighbours in a torus' "$tmp/out"
ok "without the dead as with all" test \
	"$(time_of --ranks 12 --shape 4x3 --fabric "$tmp/optical" --dead n02)" = \
	"$(time_of --ranks 12 --shape 4x3 --fabric "$tmp/optical")"
"$weft" sim allgather --ranks 12 --shape 4x3 --bytes 1M --json --fabric "$tmp/optical" >"$tmp/json"
ok "JSON of that" "$build/cli/tests/json_schema" "$top/cli/schema/sim.schema.json" "$tmp/json"
ok "and says the time of switching" grep -q '"setup_s": 0.01' "$tmp/json"

# A step over layers: 4 of 1 ms and 2 ms.
cat >"$tmp/layers" <<'END'
weft-layers 1
layer a 8M forward=1ms backward=2ms times=4
END
step=(step --layers "$tmp/layers" --fabric "$tmp/map")
"$weft" sim "${step[@]}" --ranks 4,16,32 --csv "$tmp/step.csv" --svg "$tmp/step.svg" >"$tmp/out"
ok "a step over layers" test "$(grep -c ' %  allreduce ' "$tmp/out")" = 3
ok "a line of CSV for each, of as much computing" test \
	"$(awk -F, 'NR > 1 && $3 == 0.012' "$tmp/step.csv" | wc -l)" = 3
# shellcheck disable=SC2016 # awk
ok "efficiency is computing by the step's time" awk -F, \
	'NR > 1 { d = $7 - $3 / $2; if (d > 1e-5 || d < -1e-5) exit 1 }' "$tmp/step.csv"
ok "a picture of it" grep -q '<polyline' "$tmp/step.svg"
# One bucket of all: computing, and then the all-reduce of 32 MiB alone.
"$weft" sim "${step[@]}" --ranks 16 --bucket 32M --algorithm ring --csv "$tmp/step.csv" >/dev/null
"$weft" sim allreduce --algorithm ring --ranks 16 --bytes 32M --fabric "$tmp/map" \
	--csv "$tmp/one" >/dev/null
# shellcheck disable=SC2016 # awk
ok "one bucket is the collective behind computing" awk -F, \
	'FNR != 2 { next } NR == FNR { t = $6; next } { d = $2 - 0.012 - t; exit !(d < 1e-8 && d > -1e-8) }' \
	"$tmp/one" "$tmp/step.csv"
# exposed OPTIONS: the time in which nothing is computed.
exposed() {
	"$weft" sim "${step[@]}" --ranks 16 --csv "$tmp/step.csv" "$@" >/dev/null &&
		sed -n 2p "$tmp/step.csv" | cut -d, -f5
}
ok "prefetching hides what was waited for" longer 1.1 "$(exposed --sharded --prefetch 1)" \
	"$(exposed --sharded --prefetch 0)"
ok "buckets hide more than one for all" longer 1.1 "$(exposed --bucket 8M)" \
	"$(exposed --bucket 32M)"
# shellcheck disable=SC2016 # awk
ok "a slow rank: computing takes all longer" test "$(awk -F, 'NR == 2 { print ($2 >= 0.024) }' \
	<("$weft" sim "${step[@]}" --ranks 16 --lag 3=2 --csv /dev/stdout | grep '^16,\|^ranks,'))" = 1
for mode in --bucket=1M "--sharded --prefetch=2 --dead n02 --slow n03=0.5"; do
	# shellcheck disable=SC2086 # words
	"$weft" sim "${step[@]}" --ranks 8,16 --json $mode >"$tmp/json"
	ok "JSON: $mode" "$build/cli/tests/json_schema" "$top/cli/schema/sim_step.schema.json" \
		"$tmp/json"
done
ok "the example can be used" "$weft" sim step --layers "$top/topo/examples/model.layers" \
	--fabric "$top/topo/examples/published.map" --ranks 64 --algorithm ring

# shellcheck disable=SC2317 # called by ok
says() { # STATUS TEXT ARGUMENTS...: on stderr, in one line
	local want=$1 text=$2 err status

	shift 2
	err=$("$weft" sim "$@" 2>&1 >/dev/null)
	status=$?
	[ "$status" -eq "$want" ] && [[ $err == *"$text"* ]] && [ "${err/$'\n'/}" = "$err" ]
}
all=(allgather --ranks 8 --bytes 1M --fabric "$tmp/map")
ok "an operation that there isn't: those there are" says 2 "there are: barrier, broadcast" \
	gossip --ranks 8 --bytes 1 --fabric "$tmp/map"
ok "an algorithm that there isn't: those there are" says 2 "there are: ring" "${all[@]}" \
	--algorithm nosuch
ok "no operation" says 2 "an operation is missing" --ranks 8
ok "no ranks" says 2 "--ranks is missing" allgather --bytes 1M --fabric "$tmp/map"
ok "no bytes" says 2 "--bytes is missing" allgather --ranks 8 --fabric "$tmp/map"
ok "no map" says 2 "--fabric is missing" allgather --ranks 8 --bytes 1M
for bad in '--ranks 0' '--ranks x' '--bytes -1' '--placement here' '--seed 0' '--gap x' \
	'--work 0' '--slow n01' '--slow n01=0' '--slow n01=2' '--late 1' '--lag 1=0.5' '--lag 1=2' '--lag x=2 --gap 1' \
	'--late 8=1' '--groups 0' '--strided x' '--groups 2 --strided 2' '--on 0-3 --groups 2' \
	'--on 3' '--on 5-3' '--on 0-7/0' '--on 1-2-3' '--also gossip' '--also allgather' \
	'--also allgather,bytes=x' '--also allgather,bytes=1,ranks=9' '--also barrier,more' \
	'--also barrier,begin=-1' '--also barrier,algorithm=nosuch' '--also barrier,chunk=0' \
	'--json=1' '--shape 4x' '--shape 1x4' '--late x=1' '--chunk 0' \
	'--eager x' '--nonsense' 'more'; do
	# shellcheck disable=SC2086 # two words
	ok "refused: $bad" says 2 "weft sim: " "${all[@]}" $bad
done
ok "a file that is not there" says 1 "$tmp/none: No such file" allgather --ranks 8 \
	--bytes 1M --fabric "$tmp/none"
ok "more ranks than hosts" says 1 "$tmp/map: 33 ranks, but the map has 16 hosts of 2" \
	allgather --ranks 33 --bytes 1M --fabric "$tmp/map"
ok "a slow host that there isn't" says 1 '"n99" is to be slow' "${all[@]}" --slow n99=0.5

ok "a dead host that there isn't" says 1 '"n99" is to be slow or dead' "${all[@]}" --dead n99
ok "a dead rack with ranks" says 1 'no other way to the 4 ranks' allgather --ranks 32 \
	--bytes 1M --fabric "$tmp/map" --dead b1/z1/k1
ok "a link that a tier does not have" says 1 'has a switch, and no links pair by pair' \
	"${all[@]}" --dead b1/z1/-:b1/z2/-
ok "a shape without such a torus" says 1 'is for an optical torus' "${all[@]}" --shape 4x2
ok "a shape of other ranks" says 1 "$tmp/optical:4: the job's torus has 12 places" \
	allgather --ranks 8 --bytes 1M --shape 4x3 --fabric "$tmp/optical"
ok "ranks that there are not" says 1 'ranks that there are not' "${all[@]}" --on 0-8
ok "nor beside it" says 1 'ranks that there are not' "${all[@]}" --also barrier,ranks=0-8
ok "groups that are not equal" says 1 'groups that are equal' "${all[@]}" --groups 3

for bad in '--bytes 1M' '--on 0-1' '--groups 2' '--also barrier' '--explain' '--late 1=1' \
	'--prefetch 2' '--sharded --bucket 1M' '--sharded --prefetch x' '--bucket x'; do
	# shellcheck disable=SC2086 # words
	ok "refused with step: $bad" says 2 "weft sim: " "${step[@]}" --ranks 8 $bad
done
ok "no list" says 2 "--layers is missing" step --ranks 8 --fabric "$tmp/map"
ok "a list without step" says 2 "are for weft sim step" "${all[@]}" --layers "$tmp/layers"
ok "a list that is not there" says 1 "/none: No such file" step --ranks 8 --fabric "$tmp/map" \
	--layers /none
echo "layer b 1M forward=1ms" >>"$tmp/layers"
ok "one that is wrong, with its line" says 1 "$tmp/layers:3: layer b has no backward=" \
	"${step[@]}" --ranks 8
sed -i '$d' "$tmp/layers"
ok "an algorithm that the collectives do not have" says 1 'allgather has no algorithm "nosuch"' \
	"${step[@]}" --sharded --ranks 8 --algorithm nosuch

# broken EXPRESSION: the map, changed by sed.
broken() {
	sed -e "$1" "$tmp/map" >"$tmp/bad"
}
# shellcheck disable=SC2317 # called by ok
map_says() {
	says 1 "$tmp/bad:$1: $2" allgather --ranks 8 --bytes 1M --fabric "$tmp/bad"
}
broken 's/^tier rack.*/& within=building/;s/^tier building.*/& within=rack/'
ok "a cycle, with its line" map_says 8 "tier building is within rack"
broken 's/^tier zone/tier hall/'
ok "a tier that is not known" map_says 7 'tier "hall" is not known'
broken 's/80G/0G/'
ok "a rate of zero" map_says 2 'rail r0: "0G" is no speed'
broken 's/over=2/over=0/'
ok "an oversubscription of zero" map_says 8 'tier building: "over=0"'
broken '/^tier far/d;/^tier building/d;/^tier zone/d'
ok "hosts out of reach" map_says 4 "a host of this line is out of reach of rank 0: no tier joins racks"
broken 's/^tier zone.*/host x -\/-\/-/'
ok "a host of no building" map_says 7 "host x is out of reach"

for map in "$top"/topo/examples/{ideal,published}.map; do
	ok "${map##*/} can be used" "$weft" sim allreduce --ranks 64 --bytes 1M --fabric "$map"
done
ok "torus.map can be used" "$weft" sim allreduce --ranks 64 --shape 4x4x4 --bytes 1M \
	--fabric "$top/topo/examples/torus.map"
if [ -c /dev/full ]; then
	ok "output that cannot be written: status 1" bash -c \
		"'$weft' sim ${all[*]} >/dev/full 2>&1; test \$? -eq 1"
fi
done_testing
