#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# FI_WEFT_VERBS_ATOMICS=native as applications meet it (rule E4): who may have it, where it is
# seen, many at the same words, and peers that don't agree about it.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=fabtests/emuverbs/tests/over.sh
. "$top/fabtests/emuverbs/tests/over.sh"

one='device emu0 gid=10.1.0.1 rnr=fatal'
two="$one"$'\n''device emu1 gid=10.2.0.1 rnr=fatal'

words() {
	over "$one" "$build/fabtests/own/$1" || shown
}

export FI_WEFT_VERBS_ATOMICS=native FI_WEFT_LANES=2
ok "two processes of three threads at the same words" words contend
ok "peers of which one has it and one hasn't" words native

if why=$(weft_absent); then
	skip 5 "$why"
	done_testing
fi
info() {
	over "$1" env FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_PROVIDER=weft \
		"$build/weft" info --profiles
}
refused() {
	ok "$1" grep -qE "no entry for the verbs wire: FI_WEFT_VERBS_ATOMICS=native: $2" \
		"$tmp/log" || shown
}
info "$one"
ok "weft info says that it is so" grep -qE 'rail 0: emu0 .*native atomics, up$' "$tmp/out"
info "$two"
refused "two devices know nothing of each other" '.* there are 2 rails: .*FI_WEFT_RAILS'
info "$one atomics=none"
refused "a device may have none" 'emu0 has no atomic operations'
FI_WEFT_SHM=1 info "$one"
refused "peers by shared memory are none of its" '.*set FI_WEFT_SHM=0'
unset FI_WEFT_VERBS_ATOMICS
info "$one"
ok "nobody has it who didn't ask" is_empty "$(grep 'native' "$tmp/out")"
done_testing
