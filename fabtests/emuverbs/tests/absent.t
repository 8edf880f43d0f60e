#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A host whose RDMA devices can't be used: their entry isn't there, all others are, and the
# reason is in the log of whoever asks for FI_LOG_LEVEL=info.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

why=$(weft_absent) && skip_all "$why"
unset FI_WEFT_RAILS FI_WEFT_GID_INDEX FI_WEFT_PKEY_INDEX FI_PROVIDER

# look LINES [PREFIX...]: the devices; what the command is started by.
look() {
	local lines=$1

	shift
	FI_WEFT_WIRE=${wire:-auto} FI_WEFT_SHM=1 FI_LOG_LEVEL=${level:-info} FI_LOG_PROV=weft \
		FI_PROVIDER=weft over "$lines" "$@" "$build/weft" info
}
domain() {
	grep -qE "(^|[^[:alnum:]])weft[ ].*$1" "$tmp/out" || shown
}
# absent WORDS REASON: the entry of the devices is, and that of this host isn't.
absent() {
	ok "$1: no entry of RDMA devices" test "$(grep -c 'verbs:' "$tmp/out")" = 0
	ok "$1: the one of this host is there" domain shm
	ok "$1: the log says why" grep -qE "no entry for the verbs wire: $2" "$tmp/log" || shown
}

one='device emu0 gid=10.1.0.1'

look "$one"
ok "a device that is good has an entry" domain verbs:emu0

look none
absent "no device" 'there is no RDMA device on this host'
level=warn look none
ok "who doesn't ask for reasons hears none" is_empty "$(grep "no entry for" "$tmp/log")"
wire=verbs look none
ok "the wire that was asked for and isn't there is no provider" grep -qx 'rc 1' "$tmp/out" || shown

look "$one transport=foreign"
absent "a device of another kind" 'RDMA device emu0 has no reliable connections .*efa'
look "$one transport=foreign"$'\n''device emu1 gid=10.1.0.2'
ok "one beside it is used" domain verbs:emu1
look "$one state=down"
absent "a port that is down" 'no port of an RDMA device is active: emu0 is PORT_DOWN'
look "$one gids=none"
absent "an empty GID table" 'the GID table of emu0 port 1 is empty: give its network interface'
FI_WEFT_RAILS=emu7 look "$one"
absent "a rail that there isn't" 'FI_WEFT_RAILS: .*emu7'

# Whoever may lock whatever it wants has no limit; setpriv takes that away.
low=(bash -c 'ulimit -l 64 && exec "$@"' bash)
why='this process may lock 64 KiB of memory \(RLIMIT_MEMLOCK\), and RDMA needs .*ulimit -l unlimited'
drop=(setpriv --inh-caps -ipc_lock --bounding-set -ipc_lock)
if [ "$(id -u)" != 0 ]; then
	drop=()
elif ! "${drop[@]}" true 2>"$tmp/err"; then
	drop=(skip)
fi
if [ "${drop[*]}" = skip ]; then
	skip 3 "root, and setpriv can't take a capability away: $(head -n 1 "$tmp/err")"
else
	look "$one" "${drop[@]}" "${low[@]}"
	absent "little memory that may be locked" "$why"
fi
if [ "$(id -u)" = 0 ] && setpriv --dump | grep -q '^Capability bounding set:.*ipc_lock'; then
	look "$one" "${low[@]}"
	ok "the limit isn't one of who has the capability" domain verbs:emu0
else
	skip 1 "no capability to lock memory"
fi
done_testing
