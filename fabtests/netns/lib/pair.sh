# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Two network namespaces and the cable between them. WEFT_NETNS has what the cable is like
# (MTU, loss in percent), WEFT_NETNS_BATCHES "yes" if it may lose many packets as one,
# WEFT_NETNS_RATE what it carries in Mbit/s (0: anything), WEFT_NETNS_B the process that keeps namespace b.

# netns_why LOSS RATE OPTION...: why it can't be done with these options of unshare; fails then.
netns_why()
{
	local why loss=$1 rate=$2 tool

	shift 2
	for tool in unshare nsenter ip; do
		if ! command -v "$tool" >/dev/null; then
			say "$tool is not installed (Debian: util-linux, iproute2)"
			return 1
		fi
	done
	if [[ $loss =~ [1-9] ]] && ! command -v nft >/dev/null; then
		say "--loss needs nft, which is not installed (Debian: nftables)"
		return 1
	fi
	if [ "$rate" != 0 ] && ! command -v tc >/dev/null; then
		say "--rate needs tc, which is not installed (Debian: iproute2)"
		return 1
	fi
	if ! why=$(unshare "$@" ip link add weft-try type veth peer name weft-try2 2>&1); then
		say "no network namespaces of our own: $why"
		return 1
	fi
}

# on_b WORDS...
on_b()
{
	nsenter --net="/proc/$WEFT_NETNS_B/ns/net" "$@"
}

# netns_end PREFIX DEVICE NUMBER MTU: one end of the cable. PREFIX: on_b, or nothing.
netns_end()
{
	local in_b=$1 device=$2 number=$3 mtu=$4

	${in_b:+"$in_b"} ip link set lo up &&
		${in_b:+"$in_b"} ip link set "$device" mtu "$mtu" &&
		${in_b:+"$in_b"} ip addr add "10.99.0.$number/24" dev "$device" &&
		${in_b:+"$in_b"} ip link set "$device" up || return
	# A kernel without IPv6 is no reason to run nothing.
	${in_b:+"$in_b"} ip addr add "fd99::$number/64" dev "$device" nodad 2>/dev/null || true
}

# netns_loss PREFIX DEVICE PERCENT: of what arrives.
netns_loss()
{
	local in_b=$1 device=$2 many

	many=$(awk -v percent="$3" 'BEGIN { printf "%d", percent * 1000 }')
	[ "$many" -gt 0 ] || return 0
	[ "${WEFT_NETNS_BATCHES:-no}" = yes ] ||
		${in_b:+"$in_b"} ip link set "$device" gso_max_segs 1 || return
	${in_b:+"$in_b"} nft -f - <<-END
		table inet weft {
			chain input {
				type filter hook input priority 0;
				iifname "$device" numgen random mod 100000 < $many drop
			}
		}
	END
}

# netns_rate PREFIX DEVICE MBIT: of what leaves; 0: anything.
netns_rate()
{
	local in_b=$1 device=$2

	[ "$3" != 0 ] || return 0
	${in_b:+"$in_b"} tc qdisc add dev "$device" root tbf rate "$3mbit" burst 65536 limit 262144
}

# netns_make MTU LOSS: in a network namespace of our own, which becomes a.
netns_make()
{
	local mtu=$1 loss=$2 rate=${WEFT_NETNS_RATE:-0} i

	unshare --net sleep infinity </dev/null >/dev/null 2>&1 &
	WEFT_NETNS_B=$!
	export WEFT_NETNS_B
	for ((i = 0; i < 3000; i++)); do
		[ "$(readlink "/proc/$WEFT_NETNS_B/ns/net")" = "$(readlink /proc/self/ns/net)" ] ||
			break
		sleep 0.01
	done
	if ! ip link add weft0 type veth peer name weft1 netns "$WEFT_NETNS_B" ||
		! netns_end '' weft0 1 "$mtu" || ! netns_end on_b weft1 2 "$mtu"; then
		say "fabtests: the two namespaces can't be joined" >&2
		return 1
	fi
	if ! netns_loss '' weft0 "$loss" || ! netns_loss on_b weft1 "$loss"; then
		say "fabtests: nft can't drop packets here" >&2
		return 1
	fi
	if ! netns_rate '' weft0 "$rate" || ! netns_rate on_b weft1 "$rate"; then
		say "fabtests: tc has no tbf here" >&2
		return 1
	fi
}
