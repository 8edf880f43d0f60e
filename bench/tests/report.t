#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The parts of the benchmarks that measure nothing: which rounds compare, medians, ratios,
# the last lines, and what is said of wrong options and of what is missing.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

bench=$top/bench
export P2P_HEAD=machine P2P_LANDS_WEFT=alone P2P_LANDS_PEER=alone COLL_HEAD=machine

# p2p_report ASK WANT: of $tmp/rounds and $tmp/samples
p2p_report()
{
	awk -v want="$2" -v ask="$1" -v wire=shm -v peer=shm -v cpu_a=0 -v cpu_b=1 -v ms=4 \
		-f "$bench/lib/p2p.awk" "$tmp/rounds" "$tmp/samples"
}

# sample ROUND SIDE TEST FIGURE BEFORE AFTER
sample()
{
	echo "$@" >>"$tmp/samples"
}

# Five rounds: three near, one far, one in which the peer's line had moved.
: >"$tmp/samples"
printf '%d 55.0 56.0\n' 1 2 3 4 5 >"$tmp/rounds"
for r in 1 2 3; do
	sample $r weft lat:8 0.$((r + 1)) 55 149
	sample $r peer lat:8 0.$((2 * r + 2)) 55 60
	sample $r weft rate:8 $((r * 10)) 55 60
	sample $r peer rate:8 $((r * 5)) 55 60
done
for t in lat:8 rate:8; do
	sample 4 weft $t 1000 150 250
	sample 4 peer $t 1 250 250
	sample 5 weft $t 1000 55 55
	sample 5 peer $t 1 55 250
done
ok "only rounds of one mode count" test "$(p2p_report text 3 | tail -n 1)" = \
	"p2p shm vs shm (near, 3 rounds): 8B tagged 0.50, rate 8B 2.00x"
p2p_report text 3 >/dev/null
ok "three of three is good" test $? = 0
p2p_report text 4 >"$tmp/four"
ok "three of four is not" test $? = 3
ok "which the table says" grep -q '^Only 3 comparable rounds of 4' "$tmp/four"
ok "no more rounds are needed" p2p_report enough 3
ok "the last round was mixed" test "$(p2p_report enough 3)" = "0 near, 0 far, 2 mixed"
p2p_report enough 4 >/dev/null
ok "another round is needed" test $? != 0
if command -v python3 >/dev/null 2>&1; then
	ok "the document is JSON" sh -c 'python3 -m json.tool >/dev/null' \
		< <(p2p_report json 3)
else
	skip 1 "no python3 to read JSON with"
fi
ok "with the same last line in it" test "$(p2p_report json 3 | grep -c \
	'"summary": "p2p shm vs shm (near, 3 rounds): 8B tagged 0.50, rate 8B 2.00x"')" = 1

# The same write, and with Weft's blocks in shared memory: two rows.
cp "$tmp/samples" "$tmp/samples.plain"
for r in 1 2 3; do
	sample $r weft put:8 3 55 60
	sample $r weft shared-put:8 1 55 60
	sample $r peer put:8 4 55 60
	sample $r peer shared-put:8 4 55 60
done
p2p_report text 3 >"$tmp/shared"
ok "shared memory has a row and an item of its own" test "$(tail -n 1 "$tmp/shared")" = \
	"p2p shm vs shm (near, 3 rounds): 8B tagged 0.50, rate 8B 2.00x, write 8B polled 0.75, write 8B polled shared 0.25"
ok "with its name in the table" \
	grep -qE '^write, polled, shared 8 B +1.00 +4.00 +0.25 +3  us$' "$tmp/shared"
ok "and its memory in the document" test "$(p2p_report json 3 |
	grep -c '"weft_memory": "shared", "peer_memory": "malloc"')" = 1
mv "$tmp/samples.plain" "$tmp/samples"

# Where modes don't matter every round counts.
ok "any: all rounds are compared" test "$(awk -v want=5 -v any=1 -v ask=text -v wire=uet \
	-v peer=tcp -f "$bench/lib/p2p.awk" "$tmp/rounds" "$tmp/samples" | tail -n 1)" = \
	"p2p uet vs tcp (any, 5 rounds): 8B tagged 0.50, rate 8B 6.00x"
awk -v want=6 -v any=1 -v ask=enough -v wire=uet -v peer=tcp -f "$bench/lib/p2p.awk" \
	"$tmp/rounds" "$tmp/samples" >/dev/null
ok "any: five are less than six" test $? = 1

# The floor needs no mode, and is in no row.
cp "$tmp/samples" "$tmp/samples.plain"
printf '%s\n' '1 floor lat:8 40' '2 floor lat:8 90' '3 floor lat:8 50' \
	'2 floor putbw:1048576 0.02' >>"$tmp/samples"
ok "the floor has a line" test "$(p2p_report text 3 | grep '^Floor')" = "Floor (perftest,\
 medians of all rounds): ib_send_lat 8 B 50.0 us, ib_write_bw 1 MiB 0.020 GB/s"
ok "and changes nothing else" test "$(p2p_report text 3 | grep -v '^Floor')" = \
	"$(mv "$tmp/samples.plain" "$tmp/samples" && p2p_report text 3)"
# shellcheck source=bench/lib/floor.sh
ok "a floor that is no number is told" test "$(. "$bench/lib/common.sh" &&
	. "$bench/lib/floor.sh" && { floor_line 1 lat:8 1 7.5; floor_line 2 lat:8 1 inf; } 2>&1)" = \
	$'1 floor lat:8 7.5\nno floor of lat:8 in round 2: perftest says inf'

# Three far rounds more: now far has the majority.
for r in 6 7 8; do
	echo "$r 250 250" >>"$tmp/rounds"
	for t in lat:8 rate:8; do
		sample $r weft $t 3 250 250
		sample $r peer $t 2 250 250
	done
done
ok "the mode with more rounds is taken" test "$(p2p_report text 3 | tail -n 1)" = \
	"p2p shm vs shm (far, 4 rounds): 8B tagged 1.50, rate 8B 1.50x"

# A peer without one of the tests.
sed -i '/peer rate:8/d' "$tmp/samples"
ok "what the peer does not have is not compared" test "$(p2p_report text 3 | tail -n 1)" = \
	"p2p shm vs shm (far, 4 rounds): 8B tagged 1.50"

# coll_report ASK: of $tmp/coll
coll_report()
{
	awk -v ask="$1" -v peer="${2-openmpi}" -v rounds=3 -v processors=2 \
		-f "$bench/lib/coll.awk" "$tmp/coll"
}
printf '%s\n' '2 weft barrier 0 1' '2 openmpi barrier 0 2' '2 weft barrier 0 9' \
	'2 weft barrier 0 4' '2 openmpi barrier 0 2' '2 openmpi barrier 0 1' \
	'8 weft allreduce 65536 1' '8 openmpi allreduce 65536 8' \
	'8 weft allreduce 8 3' >"$tmp/coll"
ok "collectives: medians, mean and the worst cell" test "$(coll_report text | tail -n 1)" = \
	"coll vs openmpi: geometric mean 0.50, worst 2.00 (barrier, 2 ranks)"
ok "with the same last line in JSON" test "$(coll_report json | grep -c \
	'"summary": "coll vs openmpi: geometric mean 0.50, worst 2.00 (barrier, 2 ranks)"')" = 1
printf '%s\n' '2 mpich barrier 0 1' '8 mpich allreduce 65536 16' '8 mpich allreduce 8 1' \
	>>"$tmp/coll"
ok "of two peers the better one of each cell counts" test \
	"$(coll_report text openmpi,mpich | tail -n 1)" = \
	"coll vs openmpi,mpich: geometric mean 0.71, worst 4.00 (barrier, 2 ranks)"
ok "and each has its column" test "$(coll_report text openmpi,mpich | grep -c \
	'^    8 allreduce *64K *1.000 *8.000 *16.00 *0.12')" = 1
ok "and its field in JSON" test "$(coll_report json openmpi,mpich | grep -c \
	'"peer_us": 8, "openmpi_us": 8, "mpich_us": 16, "ratio": 0.125')" = 1
: >"$tmp/coll"
coll_report text >/dev/null
ok "nothing to compare is an error" test $? = 1

# mpi_report ASK WANT: of $tmp/mpi, "round side size us before after".
mpi_report()
{
	awk -v want="$2" -v ask="$1" -v provider=weft -v peer=vader -f "$bench/lib/mpi.awk" \
		"$tmp/mpi"
}
MPI_HEAD=machine
export MPI_HEAD
for r in 1 2 3; do
	printf '%s\n' "$r weft 8 0.$((r + 1)) 55 60" "$r peer 8 0.$((2 * r + 2)) 60 55" \
		"$r weft 65536 $r 55 60" "$r peer 65536 $((2 * r)) 60 $((r == 3 ? 200 : 55))"
done >"$tmp/mpi"
ok "mpi: medians of one mode" test "$(mpi_report text 2 | tail -n 1)" = \
	"mpi over weft vs vader (near, 2 rounds): 8B 0.50, 64KiB 0.50"
mpi_report text 3 >/dev/null
ok "mpi: two of three is not good" test $? = 3
ok "mpi: the last round was mixed for one" test "$(mpi_report enough 2)" = \
	"1 near, 0 far, 1 mixed"
ok "mpi: with the same last line in JSON" test "$(mpi_report json 2 | grep -c \
	'"summary": "mpi over weft vs vader (near, 2 rounds): 8B 0.50, 64KiB 0.50"')" = 1
# A machine that moved while one size was measured: the other still has its figure.
for moved in 8 65536; do
	for s in 8 65536; do
		printf '%s\n' "1 weft $s 1 55 60" "1 peer $s 2 60 $((s == moved ? 200 : 55))"
	done >"$tmp/mpi"
	ok "mpi: only $moved bytes were measured on a machine that moved" test \
		"$(mpi_report text 1 | tail -n 1)" = "mpi over weft vs vader (near, 0 rounds): $(
			[ $moved = 8 ] && echo 64KiB || echo 8B) 0.50"
	ok "mpi: and the row of $moved bytes is there" test \
		"$(mpi_report text 1 | grep -cE '^(8B|64KiB) ')" = 2
done
sed -i 's/ 55$/ 200/' "$tmp/mpi"
ok "mpi: nothing to compare is said" test "$(mpi_report text 1 | tail -n 1)" = \
	"mpi over weft vs vader (near, 0 rounds): nothing to compare"

# status COMMAND...: prints its exit status; what it says is in $tmp/said.
status()
{
	"$@" >"$tmp/said" 2>&1
	echo $?
}
for b in instructions p2p coll mpi; do
	ok "$b: help" test "$(status "$bench/$b" --help)" = 0
	ok "$b: an unknown option" test "$(status "$bench/$b" --nonsense)" = 2
	ok "$b: an option without its value" test \
		"$(status "$bench/$b" --"$(case $b in coll) echo ranks ;; mpi) echo sizes ;; *) echo wire ;; esac)")" = 2
done
ok "instructions: an unknown wire" test "$(status "$bench/instructions" --wire=x)" = 2
ok "instructions: an unknown level" test \
	"$(status "$bench/instructions" --threading none)" = 2
ok "instructions: an unknown operation" test \
	"$(status "$bench/instructions" --operation tagged,send)" = 2
ok "instructions: a strange size" test "$(status "$bench/instructions" --size 8,0)" = 2
ok "p2p: an unknown wire" test "$(status "$bench/p2p" --wire x)" = 2
ok "p2p: a strange number of rounds" test "$(status "$bench/p2p" --rounds 0)" = 2
ok "p2p: a time that is none" test "$(status "$bench/p2p" --within soon)" = 2
ok "mpi: a strange size" test "$(status "$bench/mpi" --sizes 8,x)" = 2
ok "mpi: an unknown peer" test "$(status "$bench/mpi" --vs x)" = 2
ok "coll: a strange size" test "$(status "$bench/coll" --sizes 8:x)" = 2
ok "coll: a strange number of ranks" test "$(status "$bench/coll" --ranks 2,,4)" = 2
ok "coll: an unknown peer" test "$(status "$bench/coll" --vs openmpi,x)" = 2
ok "coll: a peer twice" test "$(status "$bench/coll" --vs mpich,mpich)" = 2
ok "coll: a peer without a name" test "$(status "$bench/coll" --vs openmpi,)" = 2
ok "coll: no processors" test "$(status "$bench/coll" --cpus 0)" = 2

# A machine on which nothing but the shell's own needs is installed.
mkdir "$tmp/bin"
for tool in bash dirname basename sort uniq; do
	ln -s "$(command -v $tool)" "$tmp/bin/$tool"
done
missing()
{
	ok "$1 $2: the peer is missing" test \
		"$(PATH=$tmp/bin status "$bench/$1" "$2" "$3")" = 2
	ok "and what to install is said" grep -q "apt-get install $4" "$tmp/said"
}
missing p2p --vs ucx ucx-utils
missing coll --vs openmpi openmpi-bin
missing coll --vs mpich mpich
missing mpi --vs vader openmpi-bin
missing instructions --wire shm valgrind

done_testing
