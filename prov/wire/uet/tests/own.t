#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The provider's black-box programs over this wire: those whose targets make no calls, whose
# counters hear of what others did, whose processes fork, and whose peers die.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"

export FI_WEFT_SHM=0 FI_WEFT_WIRE=uet
for program in counted levels forks; do
	[ -x "$build/fabtests/own/$program" ] || skip_all "fabtests/own/$program isn't built"
	ok "$program" timeout 200 "$build/fabtests/own/$program"
done

[ -x "$build/fabtests/own/death" ] || skip_all "fabtests/own/death isn't built"
said="$tmp/said"
FI_LOG_LEVEL=warn timeout 200 "$build/fabtests/own/death" >"$said" 2>&1
ok "peers that are killed" test $? = 0
ok "it is said which is gone, by its address" \
	grep -aq 'peer 127\.0\.0\.1:[1-9][0-9]* is gone: its host says' "$said"

done_testing
