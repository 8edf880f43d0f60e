#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The provider's black-box programs over this wire: those whose targets make no calls, whose
# counters hear of what others did, whose processes fork, and whose peers die.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

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

[ -x "$build/fabtests/own/sep" ] || skip_all "fabtests/own/sep isn't built"
timeout 100 "$build/fabtests/own/sep" >"$said" 2>&1
ok "endpoints with several contexts" test $? = 0
ok "aren't announced, and it is said why there are none" \
	grep -q '# SKIP .*the uet wire has no endpoints with several contexts' "$said"

[ -x "$build/fabtests/own/silent" ] || skip_all "fabtests/own/silent isn't built"
FI_LOG_LEVEL=warn timeout 200 "$build/fabtests/own/silent" >"$said" 2>&1
ok "a peer that is stopped" test $? = 0
peer=$(sed -n 's/^# the peer is //p' "$said")
ok "the log has its address, and what to change" \
	grep -aqF "peer ${peer:-nobody} is gone: it says nothing (FI_WEFT_UET_TIMEOUT=1500)" "$said"

done_testing
