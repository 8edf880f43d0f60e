#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Memory that a file descriptor stands for: devices that take it, one that doesn't beside one
# that does, and none. Rules D1, D2.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

# devices WORDS...: one for each.
devices() {
	local n=0 word

	echo 'emuverbs 1'
	for word in "$@"; do
		echo "device emu$n gid=10.$((n + 1)).0.1 rnr=fatal dmabuf=$word"
		n=$((n + 1))
	done
}

export FI_WEFT_LANES=4
devices taken >"$tmp/one"
devices taken taken >"$tmp/two"
devices taken none >"$tmp/mixed"
devices none >"$tmp/none"
DMABUF_WANT=taken emulated test_dmabuf "$tmp/one" "" "1 device"
DMABUF_WANT=taken emulated test_dmabuf "$tmp/two" "" "2 devices"
DMABUF_WANT=none emulated test_dmabuf "$tmp/mixed" "" "1 of 2 devices"
DMABUF_WANT=none emulated test_dmabuf "$tmp/none" "" "no device"
done_testing
