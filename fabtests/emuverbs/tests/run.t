#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/emuverbs/run: what it sets, what it refuses, and unmodified programs over it.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}/tests/tap.sh" || exit 99

emu=$top/fabtests/emuverbs
run=$emu/run
lib=$build/fabtests/emuverbs/.libs/libibverbs.so.1
export WEFT_TOP_BUILDDIR=$build
unset EMUVERBS_CONFIG EMUVERBS_FAULTS EMUVERBS_NET FI_WEFT_WIRE FI_WEFT_SHM FI_WEFT_LANES
[ -e "$lib" ] || bail "$lib was not built"

says() {
	"${@:2}" 2>&1 | grep -qF -- "$1"
}
status() {
	local want=$1

	shift
	"$@" >/dev/null 2>&1
	[ $? = "$want" ]
}

ok "the command's status" status 7 "$run" bash -c 'exit 7'
ok "the wire" says verbs "$run" printenv FI_WEFT_WIRE
ok "without the one of one host" says 0 "$run" printenv FI_WEFT_SHM
ok "what was set stays" says shm env FI_WEFT_WIRE=shm "$run" printenv FI_WEFT_WIRE
ok "what the setup says is set" says 16 "$run" --config 2x16-ooo printenv FI_WEFT_LANES
ok "and what was set stays" says 3 \
	env FI_WEFT_LANES=3 "$run" --config 1x1 printenv FI_WEFT_LANES
ok "a network of its own" test "$("$run" printenv EMUVERBS_NET)" != \
	"$("$run" printenv EMUVERBS_NET)"
ok "no command" status 2 "$run"
ok "an option that there isn't" says "no option '--nothing'" "$run" --nothing true
ok "a setup that there isn't" says "no file and no setup" "$run" --config nothing true
ok "faults that there aren't" says "no file" "$run" --faults "$tmp/nothing" true

if is_sanitized "$lib"; then
	skip 5 "the library is built with a sanitizer, programs are not"
elif ! command -v ibv_devinfo >/dev/null || ! command -v ibv_rc_pingpong >/dev/null; then
	skip 5 "no ibv_devinfo and ibv_rc_pingpong here (Debian: ibverbs-utils)"
else
	ok "unmodified programs find the devices" says "emu3" "$run" --config 4-faults ibv_devinfo -l
	printf 'fault emu0 1 explode\n' >"$tmp/faults"
	ok "faults are a part of the file" says "\"explode\" is no fault" \
		"$run" --config 1x1 --faults "$tmp/faults" ibv_devinfo -l
	: >"$tmp/faults"
	ok "a file without faults is no error" says "emu0" \
		"$run" --config 1x1 --faults "$tmp/faults" ibv_devinfo -l
	printf '%s\n' "emuverbs 1" "device emu0 gid=10.0.0.1" >"$tmp/config"
	cat >"$tmp/pair" <<'END'
port=$((20000 + $$ % 12000)) # below those that the kernel gives out
timeout 60 ibv_rc_pingpong -p $port -g 3 -n 500 "$@" &
server=$!
# The client gives up at once when nobody listens yet; as long as somebody may.
until timeout 60 ibv_rc_pingpong -p $port -g 3 -n 500 "$@" localhost; do
	kill -0 $server 2>/dev/null || break
	sleep 0.3
done
wait $server
END
	ok "two of them talk" says "iters in" "$run" --config "$tmp/config" bash "$tmp/pair" -s 8
	ok "with events, and validated" says "iters in" \
		"$run" --config "$tmp/config" bash "$tmp/pair" -e -c -s 20000
fi

done_testing
