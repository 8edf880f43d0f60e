# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154,SC2034 # what tap.sh sets, and what those who source this use
# A real etcd, and coordinators that keep their state in it. To be sourced after tap.sh; the
# test is skipped where etcd is not installed.
command -v etcd >/dev/null || skip_all "etcd is not installed"

weft=$build/weft
member=$build/cli/tests/ft_member
# At most 64 characters, wherever the scratch folder is.
export WEFT_JOB="secret of ${tmp##*/}"
pids=()
etcd_options=() etcd_scheme=http state_scheme=etcd
everything_ends() {
	kill -CONT "${pids[@]}" 2>/dev/null
	kill -9 "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$tmp"
}
trap '[ $BASHPID = $$ ] && everything_ends' EXIT

# has FILE TEXT [COUNT]: waits until so many lines of the file have it.
has() {
	for _ in {1..3000}; do
		[ "$(grep -c -- "$2" "$1")" -ge "${3-1}" ] && return
		sleep 0.02
	done
	cat "$1"
	return 1
}

# A port that nobody has: below those that the system gives away by itself.
free_port() {
	local port

	while :; do
		port=$((10000 + (RANDOM * 32768 + RANDOM) % 20000))
		(: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
	done
	echo $port
}

# start_etcd: at $etcd, as the options want it. Somebody else may take a port meanwhile: then at another.
start_etcd() {
	local client peer

	for _ in {1..20}; do
		client=$(free_port)
		peer=$(free_port)
		: >"$tmp/etcd"
		etcd "${etcd_options[@]}" --data-dir "$tmp/data" --listen-client-urls "$etcd_scheme://127.0.0.1:$client" \
			--advertise-client-urls "$etcd_scheme://127.0.0.1:$client" \
			--listen-peer-urls "http://127.0.0.1:$peer" \
			--initial-advertise-peer-urls "http://127.0.0.1:$peer" \
			--initial-cluster "default=http://127.0.0.1:$peer" \
			>"$tmp/etcd" 2>&1 &
		keeper=$!
		pids+=("$keeper")
		etcd=127.0.0.1:$client
		for _ in {1..1500}; do
			grep -q 'ready to serve client requests' "$tmp/etcd" && return
			kill -0 $keeper 2>/dev/null || break
			sleep 0.02
		done
		kill -9 $keeper 2>/dev/null
		rm -rf "$tmp/data"
	done
	diag "$(tail -n 5 "$tmp/etcd")"
	skip_all "etcd does not run here"
}

# start NAME PORT OPTION...: its process in $coord, what it says in files of that name.
start() {
	local name=$1 port=$2

	shift 2
	: >"$tmp/$name"
	"$weft" coordinator --listen "127.0.0.1:$port" --state "$state_scheme://$etcd/jobs/$name0" \
		--size 2 --silence 20 "$@" >"$tmp/$name" 2>"$tmp/$name.err" &
	coord=$!
	pids+=("$coord")
}

# says STATUS TEXT COMMAND...
says() {
	local want=$1 text=$2 got

	shift 2
	timeout 100 "$@" >"$tmp/said" 2>&1
	got=$?
	cat "$tmp/said"
	[ "$got" = "$want" ] && grep -q -- "$text" "$tmp/said"
}
