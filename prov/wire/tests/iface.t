#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The address of a host whose network has no way out, in network namespaces.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v ip >/dev/null || skip_all "no ip (Debian: iproute2)"
unshare -Urn ip link add own type veth peer name owned 2>/dev/null ||
	skip_all "no network namespace with a pair of interfaces can be made here"

# up NAME ADDRESS: commands that make such an interface.
up() {
	echo "ip link add $1 type veth peer name ${1}ed; ip addr add $2 dev $1 ${3-}
	ip link set $1 up; ip link set ${1}ed up"
}

# host COMMANDS FAMILY: what a host calls itself after the commands.
host() {
	unshare -Urn sh -ec "ip link set lo up; $1; exec \"$build/prov/wire/tests/test_addr\" $2"
}

# said NAME WANTED FAMILY COMMANDS
said() {
	local got

	got=$(host "$4" "$3" 2>&1)
	ok "$1 ($got)" test "$got" = "$2"
}

one=$(up own 10.77.0.5/24)
two=$(up two 10.78.0.5/24)
said "no interface but loopback" 127.0.0.1:0 4 true
said "an interface that is up, without a route outward" 10.77.0.5:0 4 "$one; $two"
said "one that is down is none" 10.78.0.5:0 4 "$one; $two; ip link set own down"
said "a default route decides" 10.78.0.5:0 4 "$one; $two; ip route add default dev two"
said "IPv6" '[fd00:77::5]:0' 6 "$(up own fd00:77::5/64 nodad)"
done_testing
