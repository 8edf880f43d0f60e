#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Peers whose hardware address isn't known are asked for, and not waited for.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v ip >/dev/null || skip_all "no ip (Debian: iproute2)"
unshare -Urn ip link add own type veth peer name owned 2>/dev/null ||
	skip_all "no network namespace with a pair of interfaces can be made here"

made="ip link set lo up; ip link add own type veth peer name owned
ip addr add 10.77.0.1/16 dev own; ip addr add fd00:77::1/64 dev own nodad
ip link set own up; ip link set owned up; ip route add 10.88.0.0/16 via 10.77.0.2"

# inside WORDS COMMAND...: its lines are ours, with WORDS before them.
inside() {
	local words=$1 line

	shift
	unshare -Urn sh -ec "$made; exec \"\$@\"" - "$@" >"$tmp/out" 2>"$tmp/err"
	echo "rc $?" >>"$tmp/out"
	while IFS= read -r line; do
		case $line in
		"ok "*) ok "$words: ${line#* - }" true ;;
		"not ok "*) ok "$words: ${line#* - }" false ;;
		"rc 0" | 1..*) ;;
		*) ok "$words: ends well ($line)" false || diag "$(tail -5 "$tmp/err")" ;;
		esac
	done <"$tmp/out"
}

inside "neighbours" "$build/prov/wire/verbs/tests/test_near"
lib=${EMUVERBS_LIB:-$build/fabtests/emuverbs/.libs}
if [ -x "$build/prov/wire/verbs/tests/test_verbs" ] && [ -e "$lib/libibverbs.so.1" ]; then
	printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.77.1.1 rnr=fatal' >"$tmp/device"
	export WEFT_TOP_BUILDDIR=$build
	inside "a link" "$top/fabtests/emuverbs/run" --config "$tmp/device" \
		timeout 200 "$build/prov/wire/verbs/tests/test_near" link
fi
done_testing
