#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_WEFT_AUTH_KEY as applications meet it, over emulated devices.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

run=$top/fabtests/emuverbs/run
module=$build/prov/libweft-fi.so
if [ ! -e "$build/fabtests/emuverbs/.libs/libibverbs.so.1" ]; then
	skip_all "there is no emulated libibverbs"
elif ! command -v fi_pingpong >/dev/null; then
	skip_all "fi_pingpong is not installed"
elif is_sanitized "$module"; then
	skip_all "fi_pingpong cannot load a module that was built with sanitizers"
elif ! grep -q 'define HAVE_LIBCRYPTO 1' "$build/config.h"; then
	skip_all "built without libcrypto"
fi

# pingpong KEY KEY: of the server, of the client; 64 KiB, for which both wait.
pingpong() {
	local port=$((20000 + RANDOM % 12000)) # below those that the kernel gives out

	cat >"$tmp/both" <<END
export FI_LOG_LEVEL=warn FI_LOG_PROV=weft
FI_WEFT_AUTH_KEY=$1 timeout 60 fi_pingpong -p weft -e rdm -I 5 -S 65536 -B $port \\
	>$tmp/server 2>&1 &
server=\$!
for try in {1..60}; do
	FI_WEFT_AUTH_KEY=$2 timeout 60 fi_pingpong -p weft -e rdm -I 5 -S 65536 -P $port \\
		127.0.0.1 >$tmp/client 2>&1
	rc=\$?
	grep -q 'onnection refused' $tmp/client || break
	kill -0 \$server 2>/dev/null || break
	sleep 0.5
done
# Its own side may hear of the end later, and has something to say about it.
for try in {1..100}; do
	kill -0 \$server 2>/dev/null || break
	! grep -q 'door ' $tmp/server || break
	sleep 0.1
done
kill \$server 2>/dev/null
wait
exit \$rc
END
	env WEFT_TOP_BUILDDIR="$build" FI_PROVIDER_PATH="$build/prov" "$run" --config 1x1 \
		bash "$tmp/both"
}

key=a-key-of-twenty-char
ok "two that have one key talk" pingpong $key $key
ok "and count what they said" grep -qE '^64k +5 ' "$tmp/client"
ok "another key: the client fails" test "$(pingpong $key x$key >/dev/null 2>&1; echo $?)" != 0
ok "its log says why" grep -q 'door .* has another key: FI_WEFT_AUTH_KEY' "$tmp/client"
ok "and the server's" grep -q "door .* doesn't let us in: FI_WEFT_AUTH_KEY" "$tmp/server"
ok "no key: the client fails" test "$(pingpong $key '' >/dev/null 2>&1; echo $?)" != 0
ok "the server's log says why" grep -q 'door .* it has no key: FI_WEFT_AUTH_KEY' "$tmp/server"
pingpong short short >/dev/null 2>&1
ok "a key that can be guessed opens no endpoint" \
	grep -q 'FI_WEFT_AUTH_KEY must have 16 to 1024 characters' "$tmp/server"
ok "and no log has a key" is_empty "$(grep -h "$key" "$tmp/server" "$tmp/client")"
done_testing
