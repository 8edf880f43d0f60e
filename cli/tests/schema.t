#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The documents of --json are as cli/schema/ says, with every option that adds members; and
# what is not as a schema says is seen.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
schemas=$top/cli/schema
export FI_PROVIDER=tcp

# fits NAME COMMAND...: what the command writes; its own status may be 1 where something of
# this host is wrong.
fits() {
	local name=$1

	shift
	timeout 120 "$@" >"$tmp/$name.json" 2>"$tmp/err" || [ $? = 1 ] || {
		cat "$tmp/err"
		return 1
	}
	"$build/cli/tests/json_schema" "$schemas/$name.schema.json" "$tmp/$name.json"
}

ok "weft info --json" fits info "$weft" info --json
ok "with variables, wrong ones too" fits info env WEFT_ALGO=broadcast=chain FI_WEFT_EAGER_SIZE=x \
	WEFT_PROGRESS=magic WEFT_JOB=secret "$weft" info --json
ok "which does not tell secrets" test "$(grep -c '"secret"' "$tmp/info.json")" = 0
if [ -e "$build/gpu/mock/.libs/libcuda.so.1" ]; then
	ok "with GPUs" fits info env LD_LIBRARY_PATH="$build/gpu/mock/.libs" WEFT_MOCK=devices=2,pcie=0 \
		WEFT_GPU_LIB="$build/.libs/libweft-gpu.so" "$weft" info --json
	ok "of which it says the paths" grep -q '"path": "dma-buf"\|"path": "staged"' "$tmp/info.json"
else
	skip 2 "the stand-in for the GPU driver was not built"
fi
ok "with nothing to run on" fits info env FI_PROVIDER=none "$weft" info --json
ok "weft doctor --json" fits doctor "$weft" doctor --json
ok "weft doctor --json of ranks" fits doctor "$weft" run -n 2 --no-prefix \
	"$weft" doctor --json --budget 1
ok "weft perf --json" fits perf "$weft" run -n 2 --no-prefix "$weft" perf all --json \
	--sizes 8:4096 --iters 3
ok "with all that adds members" fits perf "$weft" run -n 2 --no-prefix "$weft" perf allreduce \
	--json --sizes 8:64K --iters 3 --explain --overlap --breakdown --stats

# refused WHAT SED: the document of weft perf, changed.
refused() {
	sed "$1" "$tmp/perf.json" >"$tmp/bad.json"
	cmp -s "$tmp/perf.json" "$tmp/bad.json" && return 1
	! "$build/cli/tests/json_schema" "$schemas/perf.schema.json" "$tmp/bad.json"
}
ok "seen: a member that is missing" refused '/"wrong":/d'
ok "seen: one that nobody knows" refused 's/"wrong":/"more": 1, "wrong":/'
ok "seen: a text for a number" refused 's/"ranks": 2/"ranks": "2"/'
ok "seen: less than there can be" refused 's/"ranks": 2/"ranks": 0/'
ok "seen: a word that is none of them" refused 's/"memory": "host"/"memory": "disk"/'
ok "seen: another program's" refused 's/"program": "weft perf"/"program": "x"/'
# shellcheck disable=SC2016 # the last line
ok "seen: what is no JSON" refused '$d'

done_testing
