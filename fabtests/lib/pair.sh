# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Runs one command line of the list: alone, or as server and client. Variables of
# inside.sh: provider, list, timeout, bin, results, address.
# shellcheck disable=SC2154

readonly ENODATA=61 ENOSYS=38 TIMED_OUT=124 KILLED=137

# result_put RESULT SECONDS TEST [NOTE]
result_put()
{
	printf '%s\t%s\t%s\n' "$1" "$2" "$3" >>"$results"
	printf '%-52s %-4s %6s s%s\n' "$3" "$1" "$2" "${4:+  ($4)}"
}

# In tenths: bash has no floating point.
clock()
{
	local t=$EPOCHREALTIME

	t=${t/[.,]/}
	say $((t / 100000))
}

seconds()
{
	printf '%d.%d' $(($1 / 10)) $(($1 % 10))
}

status_text()
{
	case $1 in
	0) say 'exit 0' ;;
	"$ENODATA") say 'no data' ;;
	"$ENOSYS") say 'not supported' ;;
	"$TIMED_OUT" | "$KILLED") say "no end within $timeout s, or killed" ;;
	*) if [ "$1" -gt 128 ]; then say "signal $(($1 - 128))"; else say "exit $1"; fi ;;
	esac
}

log_show()
{
	say "    --- $1"
	# The end tells most; a loop of errors must not drown the other tests.
	tail -n 40 "$2" | sed 's/^/    /'
}

under_timeout()
{
	timeout -k 2 "$timeout" "$@"
}

# The client's side: the other namespace, where there is one (fabtests/netns/run).
client_run()
{
	if [ -n "${WEFT_NETNS_B-}" ]; then
		under_timeout nsenter --net="/proc/$WEFT_NETNS_B/ns/net" "$@"
	else
		under_timeout "$@"
	fi
}

# unit_run TEST WANTED_STATUS NAME
unit_run()
{
	local words status begin took
	read -ra words <<<"$1"

	begin=$(clock)
	under_timeout "$bin/${words[0]}" "${words[@]:1}" -p "$provider" >server.log 2>&1
	status=$?
	took=$(seconds $(($(clock) - begin)))
	verdict "$3" "$took" "$2" "$status"
}

# A server is ready when its door is open: something listens on the network, or one of
# the shared-memory providers has left its mark. At most a second, as upstream waits; of
# Weft each wire is known, and a busy machine may take longer to open one.
server_await()
{
	local pid=$1 i most=20

	[ "$provider" != weft ] || most=200
	for ((i = 0; i < most; i++)); do
		sleep 0.05
		kill -0 "$pid" 2>/dev/null || return
		if awk '$4 == "0A" { found = 1 } END { exit !found }' /proc/net/tcp ||
			grep -q '@.*weft' /proc/net/unix ||
			{ [ "$provider" = weft ] &&
				awk 'FNR > 1 { found = 1 } END { exit !found }' \
					/proc/net/udp /proc/net/udp6 2>/dev/null; }; then
			break
		fi
	done
	sleep 0.1
}

# pair_run TEST NAME
pair_run()
{
	local words server_pid server_status client_status begin took
	read -ra words <<<"$1"

	begin=$(clock)
	under_timeout "$bin/${words[0]}" "${words[@]:1}" -p "$provider" -s "$address" \
		>server.log 2>&1 &
	server_pid=$!
	server_await "$server_pid"
	client_run "$bin/${words[0]}" "${words[@]:1}" -p "$provider" -s "$client_address" \
		"$address" >client.log 2>&1
	client_status=$?
	if [ "$client_status" -ne 0 ]; then
		# The server would wait for the client's missing words until its own timeout.
		timeout 2 tail -s 0.1 -f --pid="$server_pid" /dev/null
		kill -TERM "$server_pid" 2>/dev/null
	fi
	wait "$server_pid"
	server_status=$?
	took=$(seconds $(($(clock) - begin)))
	verdict "$2" "$took" 0 "$server_status" "$client_status"
}

# verdict NAME SECONDS WANTED SERVER_STATUS [CLIENT_STATUS]
verdict()
{
	local name=$1 took=$2 wanted=$3 server=$4 client=${5:-$4} note

	if [ "$server" -eq "$wanted" ] && [ "$client" -eq "$wanted" ]; then
		result_put pass "$took" "$name"
		return
	fi
	note=$(status_text "$server")
	[ $# -lt 5 ] || note="server: $note, client: $(status_text "$client")"
	if [ "$wanted" -eq 0 ] && [ "$server" -eq "$client" ] &&
		{ [ "$server" -eq "$ENODATA" ] || [ "$server" -eq "$ENOSYS" ]; }; then
		if [ "$list" != core ]; then
			result_put skip "$took" "$name" "not run: $(status_text "$server")"
			return
		fi
		note="not run: $(status_text "$server")"
	fi
	result_put fail "$took" "$name" "$note"
	if [ $# -lt 5 ]; then
		log_show 'output' server.log
		return
	fi
	log_show 'output of the server' server.log
	log_show 'output of the client' client.log
}

# line_run "KIND TEST..."
line_run()
{
	local kind=${1%% *} name=${1#* } test why

	if why=$(exclude_reason "$name"); then
		result_put skip 0.0 "$name" "excluded: $why"
		return
	fi
	test=${name//SERVER_ADDR/$address}
	test=${test//GOOD_ADDR/$address}
	: >server.log
	: >client.log
	case $kind in
	unit) unit_run "$test" 0 "$name" ;;
	nodata) unit_run "$test" "$ENODATA" "$name" ;;
	pair) pair_run "$test" "$name" ;;
	esac
}
