#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Local buffers are out of peers' reach until they are announced.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

printf '%s\n' 'emuverbs 1' 'device emu0 gid=10.1.0.1 rnr=fatal' \
	'device emu1 gid=10.2.0.1 rnr=fatal' >"$tmp/two"
emulated test_reach "$tmp/two" "" "2 devices"
done_testing
