#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/clients/run on a machine of fakes: what passes, what fails, whose fault it is,
# and that a job which another provider carried is not taken for a good one.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/tap.sh" || exit 99

bin=$tmp/bin
mkdir -p "$bin" "$tmp/prov"
: >"$tmp/prov/libweft-fi.so"

executable()
{
	cat >"$1"
	chmod +x "$1"
}

# Only these, so that one can be missing.
for tool in bash env cat dirname make awk head mktemp rm mkdir grep tail sed sleep timeout id nproc sh; do
	ln -s "$(command -v $tool)" "$bin/$tool"
done
printf '#!/bin/bash\n' | executable "$bin/mpicc"
printf '#!/bin/bash\n[ -e "%s" ]\n' "$tmp/can" | executable "$bin/fi_info"

# An mpirun that says what Open MPI and the programs say; $tmp/do decides.
executable "$bin/mpirun" <<END
#!/bin/bash
[ "\$1" != --version ] || { echo "mpirun (Open MPI) 4"; exit; }
while [ \$# -gt 1 ]; do
	[ "\$1" != -n ] || ranks=\$2
	shift
done
area=\${1##*/} used=\$FI_PROVIDER checks=5 reached=
. "$tmp/do"
for ((i = 0; i < ranks; i++)); do
	echo "x: mtl:ofi:prov: \$used"
	[ -z "\$reached" ] || echo "x: mca: bml: Using ofi btl for send to y"
done
echo "\$area: \$ranks ranks, \$checks checks, 0 failed"
END

# clients_run ARGUMENT...: sets status and last; what it said is in $tmp/out.
clients_run()
{
	PATH=$bin FI_PROVIDER_PATH=$tmp/prov WEFT_TOP_BUILDDIR=$tmp/build \
		"$top/fabtests/clients/run" "$@" >"$tmp/out" 2>&1
	status=$?
	last=$(tail -n 1 "$tmp/out")
}

# expect WORDS STATUS LAST-LINE
expect()
{
	ok "$1" test "$status:$last" = "$2:$3" || diag "$status: $(tail -n 5 "$tmp/out")"
}

: >"$tmp/do"
clients_run openmpi --only 'mtl p2p'
expect "all good" 0 '4 passed, 0 failed, 0 same failure on tcp'
clients_run openmpi --only p2p --short
expect "fewer when short" 0 '2 passed, 0 failed, 0 same failure on tcp'
# shellcheck disable=SC2016 # for the fake
echo '[ "$FI_PROVIDER:$area" != weft:coll ] || exit 1' >"$tmp/do"
clients_run openmpi --short --only '2 ranks'
expect "one that fails, and not over tcp" 1 '6 passed, 1 failed, 0 same failure on tcp'
# shellcheck disable=SC2016 # for the fake
echo '[ "$area" != coll ] || exit 1' >"$tmp/do"
clients_run openmpi --short --only '2 ranks'
expect "one that fails over tcp too" 0 '6 passed, 0 failed, 1 same failure on tcp'
echo 'used=sockets' >"$tmp/do"
clients_run openmpi --only 'p2p 2 ranks' --provider tcp
expect "another provider was used" 1 '0 passed, 1 failed, 0 same failure on tcp'
ok "which is said" grep -q 'fewer than 2 ranks said that mtl ofi uses the provider tcp' \
	"$tmp/out"
echo 'checks=0' >"$tmp/do"
clients_run openmpi --only 'p2p 2 ranks' --provider tcp
expect "a program that checked nothing" 1 '0 passed, 1 failed, 0 same failure on tcp'
echo 'sleep 30' >"$tmp/do"
clients_run openmpi --only 'p2p 2 ranks' --provider tcp --timeout 1
expect "one that does not end" 1 '0 passed, 1 failed, 0 same failure on tcp'
ok "which is said" grep -q 'no end within 1 s' "$tmp/out"
# shellcheck disable=SC2016 # for the fake
echo '[ "$A:$CLIENT_MUST_MAP" = 5:memfd:weft ] || exit 1' >"$tmp/do"
clients_run openmpi --only 'p2p 2 ranks' --env A=5
expect "--env arrives, and what must be mapped" 0 '1 passed, 0 failed, 0 same failure on tcp'

# ---- the transport that needs atomic operations
echo 'reached=yes' >"$tmp/do"
clients_run openmpi --only 'p2p 2 ranks'
expect "a provider without" 0 '1 passed, 0 failed, 0 same failure on tcp'
ok "which is said" grep -q '^not run: btl ofi: the provider weft has no FI_RMA and FI_ATOMIC$' \
	"$tmp/out"
: >"$tmp/can"
clients_run openmpi --only 'p2p 2 ranks'
expect "a provider with them" 0 '3 passed, 0 failed, 0 same failure on tcp'
: >"$tmp/do"
clients_run openmpi --only 'btl p2p 2 ranks'
expect "nobody was reached, and nothing is compared with tcp" 1 \
	'0 passed, 1 failed, 0 same failure on tcp'
rm "$tmp/can"

# ---- a suite of four tests, of which one cannot be built
suite=$tmp/build/fabtests/mpisuite-openmpi-4
mkdir -p "$suite/coll"
: >"$suite/complete"
printf '%s\n' '# a comment' '' 'good 2' 'good 3 arg=-x env=MPIR_CVAR_A=1' 'good 4 arg=-x' \
	'silent 2' 'newer 2' >"$suite/coll/testlist"
cat >"$suite/coll/Makefile" <<'END'
good silent:
	@:
newer:
	@echo "undefined reference to 'MPI_New'"; false
END
# shellcheck disable=SC2016 # for the fake
echo 'case $area in good | -x) echo " No Errors" ;; esac' >"$tmp/do"
clients_run mpisuite
expect "the suite: said, silent, newer than the client" 0 \
	'2 passed, 0 failed, 1 same failure on tcp'
ok "what is newer is named" grep -q 'not run: coll/newer 2 ranks: Open MPI has no MPI_New$' \
	"$tmp/out"
ok "an argument is in the name" grep -q '^mpisuite/coll/good 4 ranks -x  *pass' "$tmp/out"

clients_run openmpi --only nonsense
expect "a test that there isn't" 2 \
	"fabtests: no test has 'nonsense' in its name; see --list"
clients_run --nonsense
ok "an unknown option" test $status = 2
clients_run
ok "no client" test $status = 2
clients_run openmpi --env 1=2
ok "an --env that sets nothing" test $status = 2
clients_run openmpi --timeout 1s
ok "a strange --timeout" test $status = 2
rm "$tmp/prov/libweft-fi.so"
clients_run openmpi
ok "a provider that is not built" test $status = 1
: >"$tmp/prov/libweft-fi.so"
rm "$bin/mpicc"
clients_run openmpi
expect "a client that is not installed" 77 \
	'fabtests: no mpicc: install it (Debian and Ubuntu: apt-get install libopenmpi-dev)'

# ---- what HPC Challenge says of itself
# shellcheck source=fabtests/clients/lib/packages.sh
. "$top/fabtests/clients/lib/packages.sh"
{
	echo '||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= 0.01 ...... PASSED'
	for i in 1 2 3 4; do echo 'Found 0 errors in 131072 locations (passed).'; done
	echo '    5 tests completed and passed residual checks.'
	echo '    0 tests completed and failed residual checks.'
	printf '%s\n' Success=1 CommWorldProcs=4 PTRANS_residual=0 MPIRandomAccess_Errors=0 \
		MPIRandomAccess_LCG_Errors=0 MPIFFT_maxErr=1.04738e-15
} >"$tmp/hpcc"
ok "hpcc: all is well" hpcc_good "$tmp/hpcc" 4
bad()
{
	sed "$2" "$tmp/hpcc" >"$tmp/hpcc.bad"
	hpcc_good "$tmp/hpcc.bad" 4 >/dev/null
	ok "hpcc: $1" test $? = 1
}
bad "another number of ranks" s/Procs=4/Procs=2/
bad "a wrong update" s/RandomAccess_Errors=0/RandomAccess_Errors=3/
bad "a transform that is off" s/maxErr=.*/maxErr=nan/
bad "a system that is not solved" 's/\.\. PASSED/.. FAILED/'
bad "a residual check that failed" '/failed residual/s/0 tests/1 tests/'
bad "an end that never came" /^Success/d

done_testing
