#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Relaxed ordering: where memory is registered with it. Rule E3.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"

emulated test_relaxed 1x1 "" "1 device"
emulated test_relaxed 2x16-ooo "" "2 devices"
printf 'emuverbs 1\ndevice emu0 gid=10.1.0.1 odp=implicit\n' >"$tmp/odp"
emulated test_relaxed "$tmp/odp" "" "memory on demand"
done_testing
