#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The script: what it refuses, that a seed repeats a run, and its last line.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

export WEFT_TOP_BUILDDIR=$build
model=$top/fabtests/chaos/model

# refused TEXT ARGUMENT...
refused() {
	local text=$1 out rc

	shift
	out=$("$model" "$@" 2>&1)
	rc=$?
	[ "$rc" = 2 ] && grep -qF -- "$text" <<<"$out"
}
ok "an unknown option" refused 'there is no "--sometimes"' --sometimes
ok "no number" refused 'wants a number, not "many"' --schedules many
ok "no program" env WEFT_TOP_BUILDDIR="$tmp" bash -c "! '$model' 2>/dev/null"
ok "twenty schedules" timeout 120 bash -c "'$model' --seed 7 --schedules 20 >'$tmp/a'"
ok "the last line says so" grep -q '^20 schedules: 0 faults; ' "$tmp/a"
timeout 120 "$model" --seed 7 --schedules 20 >"$tmp/b"
ok "the same seed does the same" cmp "$tmp/a" "$tmp/b"

done_testing
