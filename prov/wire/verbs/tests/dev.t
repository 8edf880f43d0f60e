#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Which rails are opened, on devices that fabtests/emuverbs makes up, and what is said where
# there are none.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../../../tests/tap.sh" || exit 99

run=$top/fabtests/emuverbs/run
show=$build/prov/wire/verbs/tests/rails_show
lib=${EMUVERBS_LIB:-$build/fabtests/emuverbs/.libs}
ok "nothing of libibverbs, libmlx5 or libcrypto is linked" is_empty "$(nm -D \
	--undefined-only "$build/prov/libweft-fi.so" | grep -E ' (_?ibv|mlx5dv|HMAC|EVP)_?')"

if [ ! -x "$show" ]; then
	skip 1 "built without headers of libibverbs"
	done_testing
elif [ ! -x "$run" ] || [ ! -e "$lib/libibverbs.so.1" ]; then
	skip 1 "there is no emulated libibverbs"
	done_testing
fi

# show SETUP [WANT...]: SETUP has the lines of the devices.
show() {
	local setup=$1

	shift
	printf 'emuverbs 1\n%b\n' "$setup" >"$tmp/setup"
	env -u FI_WEFT_RAILS WEFT_TOP_BUILDDIR="$build" "$run" --config "$tmp/setup" \
		timeout 30 "$show" "$@" >"$tmp/out" 2>"$tmp/err"
}

# says NAME PATTERN: so does the last show.
says() {
	ok "$1" grep -qE "$2" "$tmp/out" || diag "$(cat "$tmp/out" "$tmp/err")"
}

says_not() {
	ok "$1" is_empty "$(grep -E "$2" "$tmp/out")"
}

two='device emu0 gid=10.0.0.1\ndevice emu1 gid=10.0.0.2'

show "$two"
says "RoCE v2 by IPv4 comes first" '^rail emu0 port 1 number 0 kind roce4 gid [0-9]+ ::ffff:10.0.0.1 '
says "all active ports are rails" '^rail emu1 port 1 number 1 kind roce4 '
says "a send may carry bytes in itself" '^limits emu0 qps some wr some sge some inline [1-9]'
says "the card is one that others take" '^card good host [^ ]+ place -/-/- rails 2 '
says "a path has the rail's hops and the class that is asked for" \
	'^path port 1 sgid [0-9]+ global 1 hops 64 class 7 mtu 4096$'
says "nothing has happened" '^event none$'
says "the wire is there, by the rails' names" '^wire over emu0\+emu1$'

show "$two" rails=emu1,emu0
says "rails are taken in the order of their names" '^rail emu1 port 1 number 0 '
show "$two" rails=^emu0
says "all but one" '^rail emu1 port 1 number 0 '
says_not "which isn't there" '^rail emu0'
show "$two" rails=emu7
says "a rail that there isn't is an error that names it" '^error -61 FI_WEFT_RAILS: .*emu7'
show "$two" 'rails=emu0,,emu1'
says "and so is a list that is none" '^error -22 FI_WEFT_RAILS: '

show 'device emu0 gid=10.0.0.1 state=down\ndevice emu1 gid=10.0.0.2'
says "a port that is down is left out" '^rail emu1 port 1 number 0 '
says_not "for good" '^rail emu0'
show 'device emu0 gid=10.0.0.1 state=down'
says "no active port: which, and in what state" '^error -61 no port .* active: emu0 is .*DOWN'
says "and no wire" '^wire absent: no port .* active: emu0 is '
show 'device emu0 gid=10.0.0.1 gids=none'
says "an empty GID table" '^error -61 the GID table of emu0 port 1 is empty: '
show 'device emu0 gid=10.0.0.1 link=infiniband'
says "InfiniBand has a LID" '^rail emu0 port 1 number 0 kind ib .* lid yes '
show 'device emu0 gid=10.0.0.1 mtu=1024'
says "a smaller MTU is the path's" ' mtu 1024 '

# GIDs: what is said of a device comes behind the link's own, each as v1 and as v2.
show 'device emu0 gid=fe80::7 gid=fd00::1'
says "an IPv6 address comes before one of the link" ' kind roce6 gid 5 fd00::1 '
says "and others take its card" '^card good '
show 'device emu0 gid=fd00::1 gid=10.0.0.1'
says "IPv4 comes before it" ' kind roce4 gid 5 ::ffff:10.0.0.1 '
show 'device emu0 gid=fd00::1 gid=10.0.0.1,v1'
says "but v1 doesn't" ' kind roce6 gid 3 fd00::1 '
show 'device emu0 gid=fd00::1,v1 gid=fd00::2,empty gid=fd00::3'
says "what is empty or v1 only is passed over" ' kind roce6 gid 7 fd00::3 '
show 'device emu0 gid=fd00::1 gid=fd00::2'
says "of two alike the first" ' gid 3 fd00::1 '
show 'device emu0 gid=fd00::1,v1'
says "one of the link where there is no other" ' kind roce6 gid 1 fe80::'
says "and its card is good" '^card good '
show 'device emu0 gid=fd00::1 gid=fd00::2' gid=5
says "an IPv6 one that was asked for" ' kind roce6 gid 5 fd00::2 '
show 'device emu0 gid=fd00::1 gid=fd00::2,empty' gid=5
says "not where it is empty" '^error -61 emu0 port 1 has no GID 5 '
show 'device emu0 gid=fd00:1::1 link=infiniband'
says "InfiniBand has an address of its subnet" ' kind ib gid 0 fd00:1::1 lid yes'

show "$two" gid=1
says "a GID that was asked for" '^rail emu0 port 1 number 0 kind roce[0-9] gid 1 fe80:'
show "$two" rails=emu0 gid=77
says "and one that isn't there" '^error -61 emu0 port 1 has no GID 77 \(FI_WEFT_GID_INDEX\)'
show "$two" gid=x
says "or is none" '^error -22 FI_WEFT_GID_INDEX=x: want a number'
show "$two" rails=emu0 pkey=500
says "a partition key that isn't there" '^error -61 emu0 port 1 has no partition key 500 '
show "$two" lanes=0
says "no lanes are an error" '^error -22 '
show "$two" ooo=2
says "out of order where no device can" '^error -22 FI_WEFT_VERBS_OOO=on: emu0 places '

show 'device emu0 gid=10.0.0.1 delivery=choice' ooo=2
says "or where one can, by the vendor's library" '^rail emu0 .* ooo [1-9]'
show 'device emu0 gid=10.0.0.1 delivery=choice' ooo=1
says "unless it is turned off" '^rail emu0 .* ooo 0$'
show 'device emu0 gid=10.0.0.1 ports=2 port=2'
says "a second port has a name of its own" '^rail emu0.2 port 2 number 0 '
show 'device emu0 gid=10.0.0.1 pkeys=4' pkey=3
says "a partition key that was asked for" '^rail emu0 .* pkey [0-9a-f]*3 '

# Late enough that a busy machine has looked at the ports before, and between both.
RAILS_SHOW_EVENTS=2 show "$two\nfault emu1 at=2s port-down for=2s"
says "a port that goes down is told, and which" '^event down of emu1, which is down$'
says "and that it is back" '^event up of emu1, which is up$'

cat >"$tmp/map" <<END
weft-fabric 1
rail north 400G
rail south 400G
host node1 b1/z2/r3 north=emu1 south=emu0
host node2 b1/z2/-
END
show "$two" map="$tmp/map" host=node1
says "the map says where this host stands" '^card good host node1 place b1/z2/r3 rails 2 '
says "and numbers its rails" '^rail emu1 port 1 number 0 '
says "both of them" '^rail emu0 port 1 number 1 '
show "$two" map="$tmp/map" host=node1 rails=emu0
says "also those that are named" '^rail emu0 port 1 number 1 '
show "$two" map="$tmp/map" host=node2
says "a host of unknown rails has all" '^card good host node2 place b1/z2/- rails 2 '
show "$two" map="$tmp/map" host=node3
says "a host that the map doesn't have, but was named" '^error -22 FI_WEFT_FABRIC_HOST=node3: '
show "$two" map="$tmp/nothing"
says "a map that can't be read" '^error -22 FI_WEFT_FABRIC_MAP='

done_testing
