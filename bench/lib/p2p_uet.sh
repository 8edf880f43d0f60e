# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# bench/p2p over uet: loopback, or the two network namespaces of fabtests/netns/run, where the
# second process is in the other one. Variables of the script that sources this: peer, lat,
# bw, putbw; it gets groups, any, where, away, remark, and for UCX ucx_tls, ucx_to, ucx_at,
# ucx_on, ucx_first.
# shellcheck disable=SC2034,SC2153,SC2154

uet_prepare()
{
	any=1
	# UCX's tests have no other way to wait than polling, and may choose what they like.
	ucx_tls=${UCX_TLS:-tcp,self} ucx_first=50
	where=' (loopback)'
	if [ -n "${WEFT_NETNS_B:-}" ]; then
		away=/proc/$WEFT_NETNS_B/ns/net
		[ -r "$away" ] || die 2 "no network namespace $away: fabtests/netns/run makes one"
		where=" (veth, MTU ${WEFT_NETNS% *}, loss ${WEFT_NETNS#* } %"
		[ "${WEFT_NETNS_RATE:-0}" = 0 ] || where+=", $WEFT_NETNS_RATE Mbit/s"
		where+=')'
		ucx_to=10.99.0.1
		# UCX looks for devices in /sys, which shows those of the namespace that it was
		# mounted in: the one outside of these two.
		# shellcheck disable=SC2016 # the inner shell's
		ucx_at=(unshare --mount sh -c 'mount -t sysfs none /sys && exec "$@"' sh)
		ucx_on=(nsenter --net="$away" "${ucx_at[@]}")
		[ "$peer" != ucx ] || "${ucx_on[@]}" true 2>/dev/null ||
			die 2 "UCX finds no device in a namespace whose /sys can't be mounted, as here"
		if [ "${WEFT_NETNS#* }" = 0 ]; then
			:
		elif [ "${WEFT_NETNS_BATCHES:-no}" = yes ]; then
			remark="What a sender's kernel keeps together (up to 64 KiB) is lost together, on both sides."
		else
			remark="Packets are lost one by one: neither side's kernel keeps any together (no GSO)."
		fi
	else
		export UCX_NET_DEVICES=${UCX_NET_DEVICES:-lo}
	fi
}

# Each thing by itself: a peer that fails in one leaves the others.
uet_groups()
{
	local has_writes=yes one

	[ -z "$lat" ] || groups+=("malloc$lat")
	groups+=("malloc rate:8")
	[ -z "$bw" ] || groups+=("malloc$bw")
	for one in $bw; do
		groups+=("malloc effort:${one#*:}")
	done
	# libfabric 1.17's stall in them.
	[[ $peer != *ofi_rxd* ]] || has_writes=no
	if [ $has_writes = yes ]; then
		groups+=("malloc put:8 putdone:8$putbw" "malloc putcall:8 putcalldone:8")
	else
		remark+="${remark:+ }Writes are not compared: those of $peer stall."
	fi
}
