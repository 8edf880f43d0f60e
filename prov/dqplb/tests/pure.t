#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The machines are pure: their objects call nothing but each other and a few functions of the
# C library that neither ask the system for anything nor know the time; memory comes from
# where a machine is opened, and nowhere else.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

command -v nm >/dev/null || skip_all "nm is not installed (Debian: binutils)"
objects=$build/prov/dqplb/.libs
[ -e "$objects/tx.o" ] || objects=$build/prov/dqplb
[ -e "$objects/tx.o" ] || skip_all "the objects are not where they are looked for"

# wants FILE...: what they call and don't have themselves. A checked variant of a function
# stands for it.
wants() {
	nm "$@" | awk 'NF == 2 && $1 == "U" { print $2 } NF == 3 { have[$3] = 1 }
		END { for (name in have) print "+" name }' |
		sed -e 's/@.*//' -e 's/^__\(.*\)_chk$/\1/' | sort -u >"$tmp/names"
	grep '^+' "$tmp/names" | tr -d + >"$tmp/have"
	grep -v '^+' "$tmp/names" | grep -vxF -f "$tmp/have" |
		grep -vxE '_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|_mcleanup|mcount'
}

# beyond NAMES FILE...: what they call that is not among the names.
beyond() {
	local names=$1

	shift
	wants "$@" | grep -vxE "$names"
}

machines=()
for unit in msg rx rx_record tx tx_ack tx_lane tx_xfer; do
	machines+=("$objects/$unit.o")
done
plain='abort|mem(cpy|set|cmp|move)'
ok "the machines call nobody but what opens and closes them" \
	is_empty "$(beyond "$plain|calloc|free" "${machines[@]}")"
for unit in msg rx_record tx_ack tx_lane tx_xfer; do
	ok "$unit takes no memory" \
		is_empty "$(nm -u "$objects/$unit.o" | grep -wE 'malloc|calloc|realloc|free')"
done
text="$plain|v?snprintf|str(len|cmp|chr)|memchr|fabric_[a-z_]+|dqplb_[a-z_]+"
ok "profiles and rails read texts, and nothing else" \
	is_empty "$(beyond "$text" "$objects/profile.o" "$objects/rails.o")"

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
