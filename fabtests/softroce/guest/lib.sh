# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Inside a guest: its network, its devices, and what it says about losses.
# From the job's settings: hosts, nics, loss, mtu. From main: self (a or b).
# shellcheck disable=SC2154

readonly job=/run/softroce

say()
{
	printf '%s\n' "$*"
}

# fail MESSAGE...: for what the guest itself can't do; run on the host shows it.
fail()
{
	say "$*" >>"$job/trouble"
	say "softroce: $*"
	return 1
}

# address RAIL HOST: of a rail's interface; the rail "ctl" is for the guests' own talk.
address()
{
	local net=$1 host=1

	[ "$net" != ctl ] || net=9
	[ "$2" = a ] || host=2
	say "10.99.$net.$host"
}

# interface_of MAC
interface_of()
{
	local file

	for file in /sys/class/net/*/address; do
		[ "$(<"$file")" = "$1" ] || continue
		file=${file%/address}
		say "${file##*/}"
		return
	done
	return 1
}

# interface_up NAME ADDRESS
interface_up()
{
	ip addr add "$2/24" dev "$1" && ip link set "$1" mtu "$mtu" up
}

# Interfaces rail0 and rail1, and ctl where there are two guests. In a lone guest the rails
# are the ends of one cable: rxe turns round before it, so nothing ever runs through.
network_up()
{
	local rail number=1 name

	sysctl -q -w net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0
	ip link set lo up || return
	if [ "$hosts" = 1 ]; then
		ip link add rail0 type veth peer name rail1 || return
		interface_up rail0 "$(address 0 a)" && interface_up rail1 "$(address 1 a)"
		return
	fi
	[ "$self" = a ] || number=2
	for rail in 0 1 9; do
		name=$(interface_of "52:54:00:99:0$rail:0$number") || return
		if [ $rail = 9 ]; then
			ip link set "$name" name ctl && mtu=1500 interface_up ctl "$(address ctl "$self")"
		else
			ip link set "$name" name rail$rail &&
				interface_up rail$rail "$(address $rail "$self")"
		fi || return
	done
	# By which programs find their host's address, when nobody names one (Open MPI).
	ip route add default dev rail0
}

# Names of both guests, and no name server that anybody would wait for.
names_write()
{
	local host

	hostname "$self"
	say "127.0.0.1 localhost" >/etc/hosts
	for host in a b; do
		if [ "$hosts" = 2 ]; then
			say "$(address ctl $host) $host" >>/etc/hosts
		elif [ $host = "$self" ]; then
			say "$(address 0 a) $host" >>/etc/hosts
		fi
	done
	rm -f /etc/resolv.conf
	: >/etc/resolv.conf
}

# The devices work in soft interrupts. On a slow machine the kernel leaves those to threads
# of its own, which would wait for the next tick (4 ms) whenever a program polls.
kernel_first()
{
	local dir

	for dir in /proc/[0-9]*; do
		[[ $(<"$dir/comm") == ksoftirqd/* ]] || continue
		chrt -f -p 1 "${dir#/proc/}" || return
	done 2>/dev/null
}

# device_up RAIL: an rxe device over the rail's interface, once its port is active and it
# has the interface's IPv4 address.
device_up()
{
	local place=/sys/class/infiniband/rxe$1/ports/1 until=$((SECONDS + 120))

	[ -d "$place" ] || rdma link add "rxe$1" type rxe netdev "rail$1" || return
	while [ $SECONDS -lt $until ]; do
		grep -q ACTIVE "$place/state" && grep -q ffff: "$place"/gids/[0-3] &&
			compgen -G '/dev/infiniband/uverbs*' >/dev/null && return
		sleep 0.1
	done
	fail "rxe$1 is not active, or has no IPv4 address, after 120 s"
}

# rails_set NICS LOSS: as many devices, and so much of what leaves is lost.
rails_set()
{
	local rail

	for rail in 0 1; do
		if [ $rail -lt "$1" ]; then
			device_up $rail || return
		elif [ -e /sys/class/infiniband/rxe$rail ]; then
			rdma link delete rxe$rail || return
		fi
		tc qdisc del dev rail$rail root 2>/dev/null
		[ "$2" = 0 ] || [ $rail -ge "$1" ] ||
			tc qdisc add dev rail$rail root netem limit 10000 loss "$2" || return
	done
}

# Packets that netem has dropped, of all rails.
drops_here()
{
	local rail

	for rail in 0 1; do
		tc -s qdisc show dev rail$rail
	done | awk '/^qdisc/ { ours = $2 == "netem" }
		ours && match($0, /dropped [0-9]+/) { n += substr($0, RSTART + 8, RLENGTH - 8) }
		END { print n + 0 }'
}

# guests COMMAND...: a function or command, here and in the other guest.
guests()
{
	"$@" || return
	[ "$hosts" = 1 ] || on b "$(printf '%q ' softroce_do "$@")"
}

# The sum of drops_here over the guests.
drops()
{
	guests drops_here | awk '{ n += $1 } END { print n + 0 }'
}

# listening_await PROGRAM SECONDS: until a program of this guest listens, by TCP or by the
# devices' connection manager; fails when it has ended, or after so long. (On a busy machine a
# program can take more than a minute until it listens: its pages come from the host.)
listening_await()
{
	local until=$((SECONDS + $2)) seen=no

	while [ $SECONDS -lt $until ]; do
		# State 0A; port 7 is the guests' own.
		awk '$4 == "0A" && $2 !~ /:0007$/ { found = 1 } END { exit !found }' \
			/proc/net/tcp /proc/net/tcp6 && return
		rdma resource show cm_id 2>/dev/null | grep -q LISTEN && return
		if busybox pidof "$1" >/dev/null; then
			seen=yes
		elif [ $seen = yes ]; then
			return 1
		fi
		sleep 0.1
	done
	return 1
}

# rail_follow FILE: does with rail 1 what the file says, until it is gone, and says in
# FILE.is what it did.
rail_follow()
{
	local is='' wanted

	while [ -e "$1" ]; do
		wanted=$(<"$1")
		if [[ $wanted =~ ^(up|down)$ && $wanted != "$is" ]]; then
			ip link set rail1 "$wanted" && is=$wanted && say "$is" >"$1.is"
		fi
		sleep 0.1
	done
}
