#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What the bootstrap costs a rank does not grow with the ranks of a job: messages and memory,
# counted; the bounds leave room for ranks that had to knock twice. (Times are printed, and
# judged nowhere.) The whole: coll/boot/tests/scale.
set -u
top=${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}
WEFT_TOP_SRCDIR=$top
# shellcheck source=tests/tap.sh
. "$top/tests/tap.sh" || exit 99

scale=$build/coll/boot/tests/scale

# The powers of N in the last line: of messages, and of memory.
powers() { sed -nE 's/^scale: 512 ranks, .* messages \(N\^(-?[0-9.]+)\), .* B \(N\^(-?[0-9.]+)\) a rank,.*/\1 \2/p' "$1"; }
grows() { powers "$1" | awk '{ good = $2 > 0.8 } END { exit !good }'; }
flat() { powers "$1" | awk '{ good = $1 < 0.5 && $2 < 0.5 } END { exit !good }'; }

try() { timeout 280 "$scale" --quick "${@:2}" >"$tmp/$1" 2>&1; }

ok "512 ranks of one host meet" try one
ok "messages and memory of a rank stay as they are" flat "$tmp/one"
diag "$(cat "$tmp/one")"
ok "and on hosts of 16 ranks" try hosts --node 16
ok "messages stay so" flat "$tmp/hosts"
ok "where nobody shares" try apart --apart --len 96
ok "memory grows, and is seen to" grows "$tmp/apart"

done_testing
