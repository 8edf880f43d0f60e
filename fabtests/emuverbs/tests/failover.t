#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A checked stream over devices that fail, in its short form.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
export WEFT_TOP_SRCDIR
exec "$WEFT_TOP_SRCDIR/fabtests/emuverbs/failover"
