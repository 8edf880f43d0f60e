#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Memory of GPUs (the stand-in) over emulated devices: keys are DMA buffers. The list of
# prov/fi/tests/test_hmem, over one device and over two.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=prov/wire/verbs/tests/emulated.sh
. "$top/prov/wire/verbs/tests/emulated.sh"
if [ ! -e "$build/gpu/mock/.libs/libcuda.so.1" ]; then
	skip_all "there is no stand-in for a driver"
fi

export FI_WEFT_LANES=4 HMEM_WIRES=verbs FI_PROVIDER_PATH=$build/prov
{
	echo 'emuverbs 1'
	echo 'device emu0 gid=10.1.0.1 rnr=fatal dmabuf=taken'
} >"$tmp/one"
{
	cat "$tmp/one"
	echo 'device emu1 gid=10.2.0.1 rnr=fatal dmabuf=taken'
} >"$tmp/two"
emulated ../../../fi/tests/test_hmem "$tmp/one" "" "1 device"
emulated ../../../fi/tests/test_hmem "$tmp/two" "" "2 devices"
done_testing
