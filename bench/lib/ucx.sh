# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# UCX as the peer: the distribution's ucx_perftest, one server and one client for each
# measurement, pinned as Weft's two processes are.

# What UCX is fast with between two processes of one host; nothing else is changed. A
# value that the user has set stays.
ucx_tls=${UCX_TLS:-posix,cma,self}
# Where the server is, what it is run by, and what puts the client elsewhere.
ucx_to=127.0.0.1
ucx_at=()
ucx_on=()
# Iterations of a first run that says how many a measurement takes, where its way may be a
# hundred times slower than shared memory; 0: none is needed.
ucx_first=0

ucx_need()
{
	need_tool ucx_perftest ucx-utils
}

# ucx_test TEST:SIZE: sets ucx_name, ucx_iters (for about 40 ms) and ucx_unit; fails when
# ucx_perftest has nothing of the kind.
ucx_test()
{
	local size=${1#*:}

	case ${1%:*} in
	lat) ucx_name=tag_lat ucx_unit=us ucx_iters=$((40000000 / (400 + size / 4))) ;;
	rate) ucx_name=tag_bw ucx_unit=millions ucx_iters=400000 ;;
	bw) ucx_name=tag_bw ucx_unit=gigabytes ucx_iters=$((320000000 / size)) ;;
	put) ucx_name=ucp_put_lat ucx_unit=us ucx_iters=200000 ;;
	putbw) ucx_name=ucp_put_bw ucx_unit=gigabytes ucx_iters=$((800000000 / size)) ;;
	*) return 1 ;;
	esac
	ucx_iters=$((ucx_iters * ms / 40))
	[ $ucx_iters -ge 20 ] || ucx_iters=20
}

# ucx_measure NAME SIZE ITERATIONS: the same, of as many as last `ms` here, at most so many.
ucx_measure()
{
	local most=$3 line

	if [ "$ucx_first" -gt 0 ] && [ "$most" -gt "$ucx_first" ]; then
		line=$(ucx_once "$1" "$2" "$ucx_first") || return 1
		# The overall latency, in us, is of one iteration.
		most=$(awk -F, -v ms="$ms" -v least="$ucx_first" -v most="$most" '{
			n = $4 > 0 ? int(1000 * ms / $4) : least
			print (n < least ? least : n > most ? most : n) }' <<<"$line")
	fi
	ucx_once "$1" "$2" "$most"
}

# ucx_once NAME SIZE ITERATIONS: prints ucx_perftest's line of figures. The server may not
# listen yet at the client's first try, and the port may be somebody else's.
ucx_once()
{
	local port=$((20000 + RANDOM % 20000)) tries server line

	# shellcheck disable=SC2154 # set by the script that sources this
	"${ucx_at[@]}" env UCX_TLS="$ucx_tls" timeout -k 5 60 ucx_perftest -p $port -c "$cpu_a" \
		>"$scratch/ucx.server" 2>&1 &
	server=$!
	for ((tries = 0; tries < 100; tries++)); do
		"${ucx_on[@]}" env UCX_TLS="$ucx_tls" timeout -k 5 60 ucx_perftest "$ucx_to" -p $port \
			-c "$cpu_b" -t "$1" -s "$2" -n "$3" -w $(($3 / 10 + 10)) -f -v \
			>"$scratch/ucx.client" 2>&1
		line=$(sed -n 's/^ *\([0-9][0-9]*,.*\)/\1/p' "$scratch/ucx.client")
		[ -z "$line" ] || break
		kill -0 $server 2>/dev/null || break
		sleep 0.05
	done
	if [ -n "$line" ]; then
		wait $server
		say "$line"
		return 0
	fi
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	return 1
}

# ucx_group TEST:SIZE...: as fi_group, without those that ucx_perftest does not have.
ucx_group()
{
	local test line before after try

	for test in "$@"; do
		ucx_test "$test" || continue
		before=$(line_now) || return 1
		for try in 1 2 3; do
			line=$(ucx_measure $ucx_name "${test#*:}" $ucx_iters) && break
			[ $try -lt 3 ] || {
				cat "$scratch/ucx.server" "$scratch/ucx.client" >&2
				return 1
			}
		done
		after=$(line_now) || return 1
		# iterations, p50, average and overall latency (us), average and overall
		# bandwidth (MiB/s), average and overall rate (1/s): the overall ones are
		# those of the whole run, as p2p_fi has them.
		awk -F, -v unit=$ucx_unit -v test="$test" -v lines="$before $after" '{
			v = unit == "us" ? $4 : unit == "millions" ? $8 / 1e6 \
				: $6 * 1048576 / 1e9
			printf "%s %.6g %s\n", test, v, lines }' <<<"$line"
	done
}
