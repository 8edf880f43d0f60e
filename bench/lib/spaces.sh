# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Network namespaces, one a rank, each joined to a hub by a link that is limited at both ends.
# They have no names: each is there as long as a process in it is, and that one ends with the
# script that made it, killed or not.

declare -A holder # by namespace: the process that keeps it
declare -a bound  # in front of what ends with this script

# spaces_need: what it takes, or the script ends with status 2.
spaces_need()
{
	need_tool ip iproute2
	need_tool tc iproute2
	need_tool nsenter util-linux
	need_tool setpriv util-linux
	[ "$(id -u)" = 0 ] || die 2 "it makes network namespaces: run it as root"
	bound=(setpriv --pdeathsig KILL)
}

# space_hold NAME
space_hold()
{
	local i at="$scratch/space-$1"

	"${bound[@]}" unshare --net sh -c 'echo there && exec sleep infinity' >"$at" &
	holder[$1]=$!
	for ((i = 0; i < 200; i++)); do
		[ ! -s "$at" ] || return 0
		sleep 0.05
	done
	return 1
}

in_space()
{
	nsenter --target "${holder[$1]}" --net "${@:2}"
}

# space_limit NAME DEVICE RATE BURST QUEUE: of what leaves there.
space_limit()
{
	in_space "$1" tc qdisc add dev "$2" root tbf rate "$3" burst "$4" latency "$5"
}

# space_steady NAME: TCP there keeps a link full. It is Reno, which every kernel has: BBR, which may
# be the default, leaves links idle for up to a third of the time when messages of a megabyte go
# both ways at once. And no connection puts megabytes into the queue of its own link, where a short
# word to another rank, which waits for it, would stand behind them.
space_steady()
{
	in_space "$1" sh -c 'cd /proc/sys/net/ipv4 && echo reno >tcp_congestion_control &&
		echo 4096 16384 524288 >tcp_wmem'
}

# spaces_make RANKS RATE [BURST [QUEUE]]: namespace hub at 10.77.0.254, and 0, 1, ... at 10.77.0.1 and on.
# RATE as tc has it. BURST is what a link that rested may send at once, QUEUE the time that what
# waits there may take.
spaces_make()
{
	local i ranks=$1 rate=$2 burst=${3:-128kb} queue=${4:-50ms}

	space_hold hub && in_space hub ip link set lo up &&
		in_space hub ip link add hub type bridge &&
		in_space hub ip addr add 10.77.0.254/24 dev hub &&
		in_space hub ip link set hub up || return 1
	for ((i = 0; i < ranks; i++)); do
		space_hold "$i" &&
			in_space "$i" ip link set lo up && space_steady "$i" &&
			in_space hub ip link add "l$i" type veth peer name eth0 \
				netns "${holder[$i]}" &&
			in_space "$i" ip addr add "10.77.0.$((i + 1))/24" dev eth0 &&
			in_space "$i" ip link set eth0 up &&
			in_space hub ip link set "l$i" master hub up &&
			space_limit "$i" eth0 "$rate" "$burst" "$queue" &&
			space_limit hub "l$i" "$rate" "$burst" "$queue" || return 1
	done
}
