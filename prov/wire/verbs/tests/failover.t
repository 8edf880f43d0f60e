#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Queue pairs and ports that die under a checked stream: the application sees nothing while
# one rail lives. Rules A8, A9, B1, C1 to C5, C7.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"
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

faults "emu0 each=150 lose-immediate" "emu0 each=410 lose-ack" "emu0 each=530 lose-segment"
FAILOVER_WANT=retired,resumes emulated test_failover "$tmp/one" "$tmp/faults" "lost"

faults "emu0 each=300 kill-qp"
FAILOVER_WANT=resumes emulated test_failover "$tmp/one" "$tmp/faults" "killed"

faults "emu1 200 port-down for=300ms" "emu0 900 port-down for=300ms"
FAILOVER_WANT=retired emulated test_failover "$tmp/two" "$tmp/faults" "port down"
done_testing
