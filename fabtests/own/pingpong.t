#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# libfabric's own fi_pingpong over the provider, in a network namespace where one can be had
# (else on a port that is likely to be free). TAP.
set -u

provider=${WEFT_TEST_PROVIDER:-weft}
run=0 failed=0

if [ "${1:-}" != inside ]; then
	if ! command -v fi_pingpong >/dev/null; then
		echo '1..0 # SKIP no fi_pingpong here (Debian: libfabric-bin)'
		exit 0
	fi
	module=${FI_PROVIDER_PATH:-.}/libweft-fi.so
	uses() {
		ldd "$1" 2>/dev/null | sed -n 's/.*libfabric\.so.* => \(.*\) (.*/\1/p'
	}
	theirs=$(uses "$(command -v fi_pingpong)") ours=$(uses "$module")
	if [ "$theirs" != "$ours" ]; then
		echo "1..0 # SKIP fi_pingpong runs with $theirs, the provider is built for $ours"
		exit 0
	fi
	# A program that was not built with the sanitizer can't load it with a provider.
	if ldd "$module" 2>/dev/null | grep -q 'lib[atu]san'; then
		echo '1..0 # SKIP the provider is built with a sanitizer, fi_pingpong is not'
		exit 0
	fi
	if unshare --net true 2>/dev/null && command -v ip >/dev/null; then
		exec unshare --net "$0" inside
	fi
fi
[ "${1:-}" != inside ] || ip link set lo up || exit 99
port=$((20000 + $$ % 12000)) # below those that the kernel gives out
logs=$(mktemp -d) || exit 99
trap '[ $BASHPID = $$ ] && rm -rf "$logs"' EXIT

# pingpong WHAT ARGUMENT...
pingpong()
{
	local what=$1 server status=0
	shift

	run=$((run + 1)) port=$((port + 1))
	timeout -k 1 120 fi_pingpong -p "$provider" -e rdm "$@" -B "$port" >"$logs/server" 2>&1 &
	server=$!
	# The client gives up at once when nobody listens yet; as long as somebody may.
	while :; do
		timeout -k 1 120 fi_pingpong -p "$provider" -e rdm "$@" -P "$port" 127.0.0.1 \
			>"$logs/client" 2>&1
		status=$?
		grep -qi 'connection refused' "$logs/client" || break
		kill -0 "$server" 2>/dev/null || break
		sleep 0.1
	done
	[ "$status" -eq 0 ] || kill "$server" 2>/dev/null
	wait "$server" || status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok $run - $what"
		return
	fi
	failed=$((failed + 1))
	echo "not ok $run - $what"
	sed 's/^/# server: /' "$logs/server"
	sed 's/^/# client: /' "$logs/client"
}

pingpong 'fi_pingpong, messages' -I 1000 -S 64
pingpong 'fi_pingpong, every size, checked' -I 10 -S all -c
echo "1..$run"
[ "$failed" -eq 0 ]
