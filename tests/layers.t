#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The #include lines of the tree obey tests/layers.txt.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

violations() {
	(
		cd "$1" || exit 1
		tree_files . | grep '\.[ch]$' | tr '\n' '\0' |
			xargs -0 awk -f "$top/tests/layers.awk" "$top/tests/layers.txt"
	)
}

count=$(tree_files "$top" | grep -c '\.[ch]$')
ok "there are sources to look at" test "$count" -gt 10
ok "every include is allowed by the table ($count files)" is_empty "$(violations "$top")"

# The same on trees that are wrong in one way each: it must be seen.
bad() {
	local name=$1 file=$2 line=$3

	rm -rf "$tmp/bad"
	mkdir -p "$tmp/bad/$(dirname "$file")"
	printf '#include "config.h"\n#include <stdio.h>\n%s\n' "$line" >"$tmp/bad/$file"
	ok "seen: $name" test "$(violations "$tmp/bad" | wc -l)" = 1
}
bad "a wire that includes proto" prov/wire/shm/x.c '#include "prov/proto/x.h"'
bad "proto that includes an endpoint" prov/proto/x.c '#include "prov/fi/ep.h"'
bad "coll that includes prov" coll/exec/x.c '#include "prov/wire/wire.h"'
bad "prov that includes the collectives" prov/fi/x.c '#include "weft/weft.h"'
bad "an algorithm that knows libfabric" coll/algo/x.c '#include <rdma/fabric.h>'
bad "a plan that knows the executor" coll/plan/x.h '#  include "coll/exec/reduce.h"'
bad "a leaf that is none" util/x.h '#include "coll/plan/plan.h"'
bad "an include that is not written from the top" coll/plan/x.c '#include "plan.h"'
bad "a folder that the table does not know" elsewhere/x.c '#include "util/list.h"'

rm -rf "$tmp/bad"
mkdir -p "$tmp/bad/prov/fi"
printf '#include "config.h"\n#include "prov/proto/x.h"\n' >"$tmp/bad/prov/fi/x.c"
ok "a tree that is right passes" is_empty "$(violations "$tmp/bad")"

done_testing
