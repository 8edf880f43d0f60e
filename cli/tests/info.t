#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft info's parts: every variable with its value and where that is from, which algorithm is
# chosen when, how the provider moves messages, and why a wire is not there.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
unset FI_PROVIDER
: >"$tmp/out"

# config [NAME=VALUE...]: into $tmp/out.
config() {
	env "$@" "$weft" info --config >"$tmp/out"
}
# block NAME: the variable's lines.
block() {
	awk -v head="$1 = " 'index($0, head) == 1 { on = 1; print; next } /^[A-Z]/ { on = 0 } on' \
		"$tmp/out"
}

config
sed -n 's/^\(WEFT_[A-Z_]*\) = .*/\1/p' "$tmp/out" | LC_ALL=C sort >"$tmp/got"
sed -n 's/^\.It Ev \(WEFT_[A-Z_]*\).*/\1/p' "$top/man/weft.3" "$top/man/weft.1" |
	LC_ALL=C sort -u >"$tmp/want"
ok "--config has the library's variables" diff -u "$tmp/want" "$tmp/got"
ok "what is not set is the default" test "$(block WEFT_LINES | head -n 1)" = \
	"WEFT_LINES = auto  (default)"
provider=yes
! is_sanitized "$build/prov/libweft-fi.so" || provider=
if [ "$provider" ]; then
	sed -n 's/^\(FI_WEFT_[A-Z_]*\) = .*/\1/p' "$tmp/out" | LC_ALL=C sort >"$tmp/got"
	sed -n 's/^\.It Ev \(FI_WEFT_[A-Z_]*\).*/\1/p' "$top/man/fi_weft.7" |
		LC_ALL=C sort -u >"$tmp/want"
	ok "and the provider's" diff -u "$tmp/want" "$tmp/got"
	config FI_WEFT_EAGER_SIZE=4096
	ok "a value, where it is from, and the default" test "$(block FI_WEFT_EAGER_SIZE | head -n 1)" = \
		"FI_WEFT_EAGER_SIZE = 4096  (environment; default: 8192)"
	ok "what it may be" grep -qx '    0 to 1048576 bytes' <(block FI_WEFT_EAGER_SIZE)
	config FI_WEFT_EAGER_SIZE=many
	ok "what is not accepted is marked" grep -q '^    <-- not accepted: 0 to 1048576' \
		<(block FI_WEFT_EAGER_SIZE)
else
	skip 4 "libfabric cannot load a module that was built with sanitizers"
fi
config WEFT_PROGRESS=magic WEFT_JOB=hush
ok "the library's too" grep -q '^    <-- .*want caller or thread' <(block WEFT_PROGRESS)
ok "a secret is not told" test "$(grep -c hush "$tmp/out")" = 0

"$weft" info --algorithms >"$tmp/out"
for place in "ranks of one host that share lines" "ranks of which each is on a host of its own"; do
	ok "--algorithms has $place" grep -q "^chosen for $place, by built-in limits" "$tmp/out"
done
ok "the same algorithms as the whole" diff \
	<(sed -n '/^algorithms /,/^$/p' "$tmp/out") \
	<("$weft" info | sed -n '/^algorithms /,/^$/p')
# What it says is what a call does.
said=$(sed -n '/own, by/,$s/^  allreduce  *2  *\([a-z-]*\) up to 128K, then \([a-z]*\)$/\1 \2/p' "$tmp/out")
ok "it says what two ranks on two hosts do" test "$said" = "recursive-doubling ring"
does() {
	FI_PROVIDER=tcp WEFT_LINES=off timeout 60 "$weft" run -n 2 --no-prefix "$weft" perf \
		allreduce --sizes 128K:256K --iters 2 --json >"$tmp/perf"
	[ "$(sed -n 's/.*"algorithm": "\(.*\)",/\1/p' "$tmp/perf" | tr '\n' ' ')" = "$said " ]
}
ok "and calls of these lengths do" does
printf '{"schema": 1, "kind": "weft-tune", "provider": "tcp", "choices": [{"collective": "allreduce",
	"ranks": 2, "up_to": 1048576, "algorithm": "ring"}]}' >"$tmp/tune.json"
ok "with a table, by that" grep -qE '^  allreduce  +2 .* ring$' \
	<(WEFT_TUNE=$tmp/tune.json "$weft" info --algorithms)
bad_tune() {
	! WEFT_TUNE=$tmp/none "$weft" info --algorithms >"$tmp/out" 2>"$tmp/err" &&
		grep -qF "$tmp/none" "$tmp/err"
}
ok "a table that is not there is an error" bad_tune
ok "what is forced is told" grep -qx 'WEFT_ALGO has broadcast by chain, whenever that can do it' \
	<(WEFT_ALGO=broadcast=chain "$weft" info --algorithms)

if [ "$provider" ]; then
	FI_WEFT_EAGER_SIZE=1000 "$weft" info --protocols >"$tmp/out"
	ok "--protocols goes by the variables" grep -q '^this host  *up to 1000 bytes$' "$tmp/out"
	ok "and without them" grep -qE '^this host, attach allowed +above 8192 up to 65536 bytes$' \
		<("$weft" info --protocols)
	wires() {
		env "$@" "$weft" info | sed -n '/^wires/,/^$/p'
	}
	ok "the wire of this host is there" grep -qE '^  shm +shm ' <(wires FI_WEFT_WIRE=auto)
	ok "uet says how it comes" grep -qF 'FI_WEFT_WIRE=uet' <(wires FI_WEFT_WIRE=auto)
	ok "and is there then" grep -qE '^  uet +uet ' <(wires FI_WEFT_WIRE=uet)
	ok "which leaves out the others, with the reason" grep -qF 'FI_WEFT_WIRE=uet leaves it out' \
		<(wires FI_WEFT_WIRE=uet)
	ok "one that is turned off says by what" grep -qE '^  shm .*FI_WEFT_SHM=0 turns it off' \
		<(wires FI_WEFT_SHM=0)
	if [ -d /sys/class/infiniband ] && [ -n "$(ls /sys/class/infiniband)" ]; then
		skip 1 "there are RDMA devices"
	else
		ok "verbs says what is missing" grep -qE \
			'^  verbs +not there .*(no RDMA device|not installed|built without it)' \
			<(wires FI_WEFT_WIRE=auto)
	fi
else
	skip 8 "libfabric cannot load a module that was built with sanitizers"
fi

ok "two parts are one too many" test "$("$weft" info --config --protocols 2>&1)" = \
	'weft info: one part, no more: "--protocols"; see weft info --help'

done_testing
