#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The provider's black-box programs over this wire: those whose targets make no calls, whose
# counters hear of what others did, and whose processes fork.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh"

export FI_WEFT_SHM=0 FI_WEFT_WIRE=uet
for program in counted levels forks; do
	[ -x "$build/fabtests/own/$program" ] || skip_all "fabtests/own/$program isn't built"
	ok "$program" timeout 200 "$build/fabtests/own/$program"
done

done_testing
