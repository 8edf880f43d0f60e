#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# bench/p2p runs against every peer that is here, and its last line can be read.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

"$build/bench/linelat" choose >"$tmp/cpus" 2>&1 || skip_all "$(cat "$tmp/cpus")"
read -r cpu_a cpu_b why <"$tmp/cpus"
ok "two different processors are chosen" test -n "$why" -a "$cpu_a" -ne "$cpu_b"

# against PEER PACKAGE
against()
{
	local status last figures

	"$top/bench/p2p" --vs "$1" --quick --rounds 1 --sizes 8,1M >"$tmp/out" 2>"$tmp/err"
	status=$?
	if [ $status = 2 ]; then
		skip 4 "$(tail -n 1 "$tmp/err")"
		return
	fi
	# 3: the machine moved too much; the last line is there all the same.
	ok "$1: it runs" test $status = 0 -o $status = 3 || diag "$(tail -n 5 "$tmp/err")"
	last=$(tail -n 1 "$tmp/out")
	figures='8B tagged [0-9.]+, rate 8B [0-9.]+x, bw 1MiB [0-9.]+x'
	figures+=', write 8B polled [0-9.]+, write 8B polled shared [0-9.]+'
	[ $status = 0 ] || figures='.+'
	ok "$1: the last line is read" grep -qE \
		"^p2p shm vs $1 \((near|far), [0-9]+ rounds?\): $figures\$" <<<"$last"
	ok "$1: writes into shared memory have rows of their own" \
		grep -qE '^write bandwidth, shared 1 MiB +[0-9.]+ ' "$tmp/out"
	ok "$1: every round's line latency is printed" \
		grep -qE '^round 1: line [0-9.]+ ns before, [0-9.]+ ns after' "$tmp/out"
}
against shm
against ucx

# over_uet WORDS PEER SIZES FIGURES COMMAND...: in front of bench/p2p.
over_uet()
{
	local words=$1 peer=$2 sizes=$3 figures=$4 status

	shift 4
	"$@" "$top/bench/p2p" --wire uet --vs "$peer" --quick --rounds 1 --sizes "$sizes" \
		>"$tmp/out" 2>"$tmp/err"
	status=$?
	if [ $status = 2 ] || [ $status = 77 ]; then
		skip 3 "$(tail -n 1 "$tmp/err")"
		return
	fi
	ok "uet, $words, $peer: it runs" test $status = 0 || diag "$(tail -n 5 "$tmp/err")"
	ok "uet, $words, $peer: where is said" grep -q "^weft over uet ($words" "$tmp/out"
	ok "uet, $words, $peer: the last line is read" grep -qE "^p2p uet vs $peer \(any, 1 round\): \
8B tagged [0-9.]+, rate 8B [0-9.]+x$figures\$" "$tmp/out"
}
x='[0-9.]+x'
over_uet loopback tcp 8,1M ", bw 1MiB $x, write 8B polled [0-9.]+, write bw 1MiB $x, bytes per CPU 1MiB $x" env
ok 'uet: writes to a target that calls have rows of their own' \
	grep -qE '^write, completion, target calls 8 B +[0-9.]+ +[0-9.]+ ' "$tmp/out"
over_uet veth tcp 8 ', write 8B polled [0-9.]+' "$top/fabtests/netns/run"
over_uet loopback ucx 8 ', write 8B polled [0-9.]+' env
over_uet veth ucx 8 ', write 8B polled [0-9.]+' "$top/fabtests/netns/run"

done_testing
