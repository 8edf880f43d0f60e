#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The protocol is pure: its objects call nothing but each other and a few functions of the C
# library that neither ask the system for anything nor know the time; memory comes from where
# the delivery machine is opened, and nowhere else.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v nm >/dev/null || skip_all "nm is not installed (Debian: binutils)"
objects=$build/prov/wire/uet/.libs
[ -e "$objects/uet_pds.o" ] || objects=$build/prov/wire/uet
[ -e "$objects/uet_pds.o" ] || skip_all "the objects are not where they are looked for"

# beyond NAMES FILE...: what the objects call that they don't have and that isn't among the
# names. A checked variant of a function stands for it.
beyond() {
	local names=$1

	shift
	nm "$@" | awk 'NF == 2 && $1 == "U" { want[$2] = 1 } NF == 3 { have[$3] = 1 }
		END { for (name in want) if (!(name in have)) print name }' |
		sed -e 's/@.*//' -e 's/^__\(.*\)_chk$/\1/' |
		grep -vxE "_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|_mcleanup|mcount|$names"
}

units=(uet_nscc uet_path uet_pdc uet_pdc_ack uet_pdc_rx uet_pdc_tx uet_wire uet_wire_put)
machines=("$objects/uet_pds.o")
for unit in "${units[@]}"; do
	machines+=("$objects/$unit.o")
done
plain='abort|__assert_fail|mem(cpy|set|cmp|move)'
ok "the protocol calls nobody but what opens and closes it" \
	is_empty "$(beyond "$plain|calloc|free" "${machines[@]}")"
for unit in "${units[@]}"; do
	ok "$unit takes no memory" \
		is_empty "$(nm -u "$objects/$unit.o" | grep -wE 'malloc|calloc|realloc|free')"
done

# The same on something that is not pure: it must be seen.
cat >"$tmp/clock.c" <<'END'
#include <time.h>
long tick(void);
long tick(void)
{
	return (long)time(0);
}
END
${CC:-cc} -c -o "$tmp/clock.o" "$tmp/clock.c" 2>"$tmp/err" || bail "no object of a clock"
ok "a clock is seen" test "$(beyond "$plain" "$tmp/clock.o")" = time

done_testing
