#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Queue pairs and ports that die under a checked stream: the application sees nothing while
# one rail lives. Rules A8, A9, B1, C1 to C5, C7.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

# faults LINES: what happens, in $tmp/faults.
faults() {
	printf 'fault %s\n' "$@" >"$tmp/faults"
}

one='emuverbs 1\ndevice emu0 gid=10.1.0.1 rnr=fatal\n'
two='emuverbs 1\ndevice emu0 gid=10.1.0.1 rnr=fatal\ndevice emu1 gid=10.2.0.1 rnr=fatal\n'
printf '%b' "$one" >"$tmp/one"
printf '%b' "$two" >"$tmp/two"
export FI_WEFT_LANES=8
# A machine that does much else is no peer that is gone.
export FI_WEFT_CONNECT_TIMEOUT=60000

faults "emu0 each=150 lose-immediate" "emu0 each=410 lose-ack" "emu0 each=530 lose-segment"
FAILOVER_WANT=retired,resumes emulated test_failover "$tmp/one" "$tmp/faults" "lost"

# What devices say of an interface that is gone before they say that it is.
faults "emu0 each=90 lose-route"
FAILOVER_WANT=retired,resumes emulated test_failover "$tmp/one" "$tmp/faults" "no route"

faults "emu0 each=300 kill-qp"
FAILOVER_WANT=resumes emulated test_failover "$tmp/one" "$tmp/faults" "killed"

# Where queue pairs of the channel are kept for a while.
printf '%b' "${one/fatal/fatal last=never}" >"$tmp/mute"
faults "emu0 each=100 kill-qp"
FAILOVER_WANT=resumes emulated test_failover "$tmp/mute" "$tmp/faults" "killed, and kept"

faults "emu1 200 port-down for=300ms" "emu0 900 port-down for=300ms"
FAILOVER_WANT=retired emulated test_failover "$tmp/two" "$tmp/faults" "port down"

# A device that is gone doesn't come back.
faults "emu1 60 device-fatal"
FAILOVER_WANT=retired emulated test_failover "$tmp/two" "$tmp/faults" "a device is gone"
faults "emu0 60 device-fatal host=2"
FAILOVER_WANT=resumes emulated test_failover "$tmp/two" "$tmp/faults" "a device of the peer"

# Every few segments one is lost with its queue pair, the control channel's among them.
faults "emu0 each=30 kill-qp" "emu0 each=20 lose-ack"
FAILOVER_ROUNDS=60 FAILOVER_WANT=retired,resumes \
	emulated test_failover "$tmp/one" "$tmp/faults" "very often"

# So often that hardly a control channel lives until the next is asked for, and that a lane
# with all it may take would never bring anything.
faults "emu0 each=12 kill-qp" "emu0 each=7 lose-ack"
FAILOVER_ROUNDS=20 FAILOVER_WANT=resumes \
	emulated test_failover "$tmp/one" "$tmp/faults" "at once"

# Queue pairs that answer nothing, for ever, and say nothing: a lane's, the control channel's.
faults "emu1 50 stall-qp for=1000s"
FI_WEFT_ANSWER_TIME=1000 FAILOVER_WANT=retired \
	emulated test_failover "$tmp/two" "$tmp/faults" "silent lane"
faults "emu0 1 stall-qp for=1000s"
FI_WEFT_ANSWER_TIME=1000 FAILOVER_WANT=resumes \
	emulated test_failover "$tmp/two" "$tmp/faults" "silent channel"

# Ports that come back, and nobody hears of it; or of nothing at all.
faults "emu0 200 port-down for=300ms lost=up" "emu1 200 port-down for=300ms lost=up"
FAILOVER_WANT=retired,resumes emulated test_failover "$tmp/two" "$tmp/faults" "return unheard"
faults "emu0 200 port-down for=300ms lost=both" "emu1 300 port-down for=300ms lost=both host=1"
FAILOVER_WANT=retired,resumes emulated test_failover "$tmp/two" "$tmp/faults" "outage unheard"

# Drivers that take their time to destroy a queue pair: nobody waits for them.
faults "emu1 50 port-down" "emu0 300 kill-qp"
FAILOVER_HELD=1 FAILOVER_WANT=retired \
	emulated test_failover "$tmp/two" "$tmp/faults" "held"

# Nothing is left: all that is under way ends, with an error, by the deadline.
faults "emu0 60 port-down" "emu1 60 port-down"
FAILOVER_MODE=dead emulated test_failover "$tmp/two" "$tmp/faults" "all rails dead"
done_testing
