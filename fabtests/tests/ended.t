#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Whoever ends a suite, or upstream, by TERM ends all that it runs. What is run is made up: it
# says that it is there, and holds a lock as long as it or a child of it lives.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v flock >/dev/null || skip_all "no flock here"
mkdir -p "$tmp"/fabtests/{lib,uet,netns,emuverbs/setups} "$tmp/build/prov/wire/uet/tests"
cp "$top/fabtests/lib/child.sh" "$tmp/fabtests/lib/"
cp "$top/fabtests/uet/suite" "$tmp/fabtests/uet/"
cp "$top/fabtests/emuverbs/suite" "$tmp/fabtests/emuverbs/"
cp "$top/fabtests/emuverbs/setups/1x1" "$tmp/fabtests/emuverbs/setups/"

# made FILE LINES: a script.
made() {
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/$1"
	chmod +x "$tmp/$1"
}
# It ends what it started itself, as upstream does, or heeds nothing.
good="exec 9>'$tmp/held'; flock 9; sleep 600 &
trap \"kill \$!; exit 143\" TERM; touch '$tmp/there'; wait"
stubborn="trap '' TERM; exec 9>'$tmp/held'; flock 9; touch '$tmp/there'; while :; do sleep 0.1; done"

# ended COMMAND...: by TERM, as soon as what it runs is there.
ended() {
	local pid i got

	rm -f "$tmp/there"
	"$@" >"$tmp/out" 2>&1 &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ ! -e "$tmp/there" ] || break
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	kill -TERM "$pid"
	wait "$pid"
	got=$?
	if ! [ -e "$tmp/there" ] || [ "$got" != 143 ] || ! flock -w 60 "$tmp/held" true; then
		diag "status $got" && diag "$(tail -n 5 "$tmp/out")"
		return 1
	fi
}

export WEFT_TOP_BUILDDIR=$tmp/build
made fabtests/upstream "$good"
# shellcheck disable=SC2016 # for the script
made fabtests/emuverbs/run 'shift 2; exec "$@"'
ok "the suite of emulated devices: upstream ends" ended "$tmp/fabtests/emuverbs/suite" --setup 1x1 ci
ok "the suite of uet: upstream ends" ended "$tmp/fabtests/uet/suite" --part drop-1 ci
made build/prov/wire/uet/tests/test_uet_pds "$good"
ok "or a program" ended "$tmp/fabtests/uet/suite" --part clock ci
made fabtests/netns/run "$stubborn"
ok "also what heeds no signal" ended "$tmp/fabtests/uet/suite" --part veth-1500 ci

# upstream itself, in namespaces of its own.
namespaces=(--pid --mount --net --fork --kill-child --mount-proc)
[ "$(id -u)" = 0 ] || namespaces+=(--user --map-root-user)
if ! unshare "${namespaces[@]}" true 2>"$tmp/err"; then
	skip 1 "namespaces are refused here: $(head -n 1 "$tmp/err")"
else
	mkdir -p "$tmp/install/bin"
	made install/bin/fi_rdm "$stubborn"
	made install/bin/runfabtests.sh 'functional_tests=("fi_rdm")'
	ok "upstream: its test ends" ended env FABTESTS="$tmp/install" \
		WEFT_TOP_BUILDDIR="$build" "$top/fabtests/upstream" --list '^fi_rdm$' \
		--timeout 300
fi
done_testing
