#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft tune, and choosing by the table that it writes: the fastest of those measured is in
# it, WEFT_TUNE makes the library choose it, ranks with different tables hear it.
set -u

build=${WEFT_TOP_BUILDDIR:-.}
weft=$build/weft
export FI_PROVIDER=tcp
# Tables and terms are about messages.
export WEFT_LINES=off
tmp=$(mktemp -d) || exit 99
trap '[ $BASHPID = $$ ] && rm -rf "$tmp"' EXIT
n=0
failed=0

ok() { # NAME COMMAND...
	local name=$1

	shift
	n=$((n + 1))
	if "$@"; then
		echo "ok $n - $name"
	else
		failed=1
		echo "not ok $n - $name"
		tail -n 5 "$tmp/out" "$tmp/err" | cut -c 1-200 | sed 's/^/# /'
	fi
}

# shellcheck disable=SC2317 # called by ok
status_is() { # STATUS COMMAND...
	local want=$1 status

	shift
	timeout 120 "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	[ "$status" -eq "$want" ] || echo "# exit status $status, want $want"
	[ "$status" -eq "$want" ]
}

run=("$weft" run -n 2 --no-prefix)
ok "a table" status_is 0 "${run[@]}" "$weft" tune allreduce --sizes 8:1K --budget 1 \
	--out "$tmp/table"
ok "of what there is" grep -qE '"algorithm": "(ring|recursive-doubling|halving-doubling|double-tree|hierarchical)"' \
	"$tmp/table"
# By name they would be had, as messages: a table with them would not count.
ok "and nothing of lines, which are off" test "$(grep -c '"algorithm": "lines"' "$tmp/table")" = 0
ok "with the terms of the model" grep -qE '"alpha_ps": [1-9]' "$tmp/table"
ok "for this number of ranks" grep -q '"ranks": 2' "$tmp/table"
export WEFT_TUNE=$tmp/table
ok "it can be read" status_is 0 "${run[@]}" "$weft" perf allreduce --sizes 8:8 --iters 1 \
	--explain
ok "and says why" grep -q 'ok  WEFT_TUNE has it as the fastest' "$tmp/out"
ok "what it does not have goes by the model" status_is 0 "${run[@]}" "$weft" perf broadcast \
	--sizes 8:8 --iters 1 --explain
ok "and says so" grep -q 'ok  cost model: ' "$tmp/out"
cat >"$tmp/own" <<'END'
{"schema": 1, "kind": "weft-tune", "choices": [
  {"collective": "allreduce", "ranks": 2, "up_to": 64, "algorithm": "double-tree"},
  {"collective": "allreduce", "ranks": 2, "up_to": 128, "algorithm": "ring"}]}
END
echo '{"schema": 1, "kind": "weft-tune", "choices": [], "cost": {"alpha_ps": 1000000000,
  "beta_fs": 100, "gamma_fs": 100}}' >"$tmp/terms"
WEFT_TUNE=$tmp/terms ok "terms of the model by hand" status_is 0 "${run[@]}" "$weft" perf \
	allreduce --sizes 8K:8K --iters 1 --explain
ok "are what it goes by" grep -qE ' 8K +recursive-doubling .*cost model: .* \(alpha 1000.000 us' \
	"$tmp/out"
# Ranks that chose apart would hear of it in the first call that they disagree about.
WEFT_TUNE=measure ok "terms that are measured where it runs" status_is 0 "$weft" run -n 3 \
	--no-prefix "$weft" perf all --sizes 8:64K --iters 1 --explain
ok "all ranks choose by them" test "$(grep -c 'cost model: .* (alpha' "$tmp/out")" -ge 20
ok "the same for all calls" test \
	"$(grep -o '(alpha.*)' "$tmp/out" | sort -u | wc -l)" -eq 1
ok "and who is alone has none" status_is 0 env WEFT_TUNE=measure "$weft" perf allreduce \
	--sizes 8:8 --iters 1
# shellcheck disable=SC2016 # the ranks expand it
ok "who measures and who doesn't" status_is 1 "${run[@]}" sh -c \
	'[ "$WEFT_RANK" = 0 ] || WEFT_TUNE=measure; exec '"$weft"' perf barrier'
ok "hear it, too" grep -q 'choose algorithms by different tables' "$tmp/err"
export WEFT_TUNE=$tmp/own
ok "a table by hand" status_is 0 "${run[@]}" "$weft" perf allreduce --sizes 8:2K --iters 1
ok "short" grep -qE ' 8 +double-tree ' "$tmp/out"
ok "long" grep -qE ' 2K +ring ' "$tmp/out"
WEFT_ALGO=allreduce=hierarchical ok "WEFT_ALGO counts more" status_is 0 "${run[@]}" "$weft" \
	perf allreduce --sizes 8:8 --iters 1
ok "it did" grep -qE ' 8 +hierarchical ' "$tmp/out"
# shellcheck disable=SC2016 # the ranks expand it
ok "ranks with different tables" status_is 1 "${run[@]}" sh -c \
	'[ "$WEFT_RANK" = 0 ] || WEFT_TUNE='"$tmp/table"'; exec '"$weft"' perf barrier'
ok "hear it" grep -q 'choose algorithms by different tables' "$tmp/err"
echo '{"schema": 1,' >"$tmp/own"
ok "a table that is cut short" status_is 1 "$weft" perf barrier
ok "is told with its place" grep -q 'own, line 2, column 1: there must be a text' "$tmp/err"
ok "weft info" status_is 0 "$weft" info
ok "says it, too" grep -q 'WEFT_TUNE=.*<-- WEFT_TUNE: .*line 2' "$tmp/out"
unset WEFT_TUNE
ok "a file that can't be written" status_is 1 "$weft" tune barrier --out "$tmp/no/where"
ok "is named" grep -q "weft tune: --out $tmp/no/where: No such file" "$tmp/err"
for bad in '' 'nosuch' 'barrier more' 'barrier --sizes 7:8' 'barrier --budget 0' \
	'barrier --nonsense'; do
	# shellcheck disable=SC2086 # words
	ok "refused: tune $bad" status_is 2 "$weft" tune $bad
done
ok "--help is no error" status_is 0 "$weft" tune --help
echo "1..$n"
exit $failed
