#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Own tests whose sides are started one by one, as on two hosts (own/apart.h).
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

program=$build/fabtests/own/stream
[ -x "$program" ] || bail "fabtests/own/stream is not built"
export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$build/prov}

# refused TEXT NAME=VALUE...
refused() {
	local text=$1 out

	shift
	out=$(env "$@" timeout 60 "$program" --size 1 2>&1) && return 1
	grep -qF "$text" <<<"$out" || { diag "$out"; return 1; }
}
ok "a side that is none" refused "0 or 1 is wanted" WEFT_TEST_SIDE=2
ok "no place to meet" refused "wants WEFT_TEST_MEET=IP:PORT" WEFT_TEST_SIDE=1
ok "no port" refused "wants WEFT_TEST_MEET=IP:PORT" WEFT_TEST_SIDE=1 \
	WEFT_TEST_MEET=127.0.0.1 WEFT_TEST_SOURCE=127.0.0.1
ok "no address of one's own" refused "wants WEFT_TEST_SOURCE=IP" WEFT_TEST_SIDE=1 \
	WEFT_TEST_MEET=127.0.0.1:7001

# both: in a network of their own, where no other test has the port.
# shellcheck disable=SC2016 # for the inner shell
both='ip link set lo up || exit 77
export WEFT_TEST_MEET=127.0.0.1:7001 WEFT_TEST_SOURCE=127.0.0.1
WEFT_TEST_SIDE=1 timeout 240 "$1" --size 256K --seed 7 >"$2/1" 2>&1 &
WEFT_TEST_SIDE=0 timeout 240 "$1" --size 256K --seed 7 >"$2/0" 2>&1
a=$?
wait $!
b=$?
[ $a = 0 ] && [ $b = 0 ]'
if command -v ip >/dev/null && unshare -n true 2>/dev/null; then
	unshare -n bash -c "$both" x "$program" "$tmp"
	rc=$?
	ok "both sides, one by one" test $rc = 0 ||
		diag "$(tail -n 5 "$tmp/0" "$tmp/1")"
	ok "each ran two cases" test "$(cat "$tmp/0" "$tmp/1" | grep -c '^ok ')" = 4
else
	diag "no network namespaces here: the sides don't meet"
fi
done_testing
