# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the RDMA devices do without libfabric: perftest's programs, pinned as the two
# processes of a measurement are. Variables of the script that sources this: scratch, cpu_a,
# cpu_b, ms.
# shellcheck disable=SC2154

# Index of the address in the device's table: that of its IPv4 address, for RoCE v2, where it
# has one.
floor_gid()
{
	local place=/sys/class/infiniband/$1/ports/1 file

	for file in "$place"/gids/*; do
		if grep -q ffff: "$file" &&
			grep -q v2 "$place/gid_attrs/types/${file##*/}" 2>/dev/null; then
			say "${file##*/}"
			return
		fi
	done
	say 0
}

floor_need()
{
	need_tool ib_send_lat perftest
	need_tool ib_write_bw perftest
}

# floor_once PROGRAM SIZE COUNT: prints the program's line of figures. The server may not
# listen yet at the client's first try, and the port may be somebody else's.
floor_once()
{
	local device port=$((20000 + RANDOM % 20000)) tries server line='' common

	device=$(compgen -G '/sys/class/infiniband/*' | head -n 1)
	device=${device##*/}
	common=(-d "$device" -x "$(floor_gid "$device")" -s "$2" -n "$3" -p $port -F)
	timeout -k 5 240 taskset -c "$cpu_a" "$1" "${common[@]}" >"$scratch/floor" 2>&1 &
	server=$!
	for ((tries = 0; tries < 100; tries++)); do
		timeout -k 5 240 taskset -c "$cpu_b" "$1" "${common[@]}" 127.0.0.1 \
			>"$scratch/floor.client" 2>&1
		line=$(grep -E "^[[:space:]]*$2[[:space:]]+$3[[:space:]]+[-a-z0-9.]" \
			"$scratch/floor.client")
		[ -z "$line" ] || break
		kill -0 $server 2>/dev/null || break
		sleep 0.1
	done
	kill $server 2>/dev/null
	wait $server 2>/dev/null
	[ -n "$line" ] && say "$line" && return
	cat "$scratch/floor" "$scratch/floor.client" >&2
	return 1
}

# floor_line ROUND TEST FACTOR FIGURE: a line of a sample. On a machine that others use the
# programs may fail to find out how fast their clock runs; then they print "inf" or "nan".
floor_line()
{
	if [[ $4 =~ ^[0-9.]+$ ]] && [[ $4 =~ [1-9] ]]; then
		awk -v factor="$3" -v figure="$4" -v head="$1 floor $2" \
			'BEGIN { print head, figure * factor }'
	else
		note "no floor of $2 in round $1: perftest says $4"
	fi
}

# floor_measure ROUND: lines "round floor test figure", in the units of p2p.
floor_measure()
{
	local line columns

	# bytes, count, least, most, typical, average (us): p2p has medians too.
	line=$(floor_once ib_send_lat 8 $((ms * 5))) || return
	read -ra columns <<<"$line"
	floor_line "$1" lat:8 1 "${columns[4]}"
	# bytes, count, most, average (MiB/s).
	line=$(floor_once ib_write_bw 1048576 $((ms / 10 + 5))) || return
	read -ra columns <<<"$line"
	floor_line "$1" putbw:1048576 0.001048576 "${columns[3]}"
}
