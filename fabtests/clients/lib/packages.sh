# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Programs that come built: a numerical one that checks its own results, a benchmark in
# its mode that checks contents, and libfabric's own tools. Variables of the script that
# sources this: build, scratch, provider, short, top.
# shellcheck disable=SC2154

# need_client TOOL PACKAGE
need_client()
{
	command -v "$1" >/dev/null ||
		die 77 "no $1: install it (Debian and Ubuntu: apt-get install $2)"
}

hpcc_need()
{
	openmpi_need
	need_client hpcc hpcc
	need_client NPopenmpi netpipe-openmpi
}

# hpcc_input N P Q: what hpcc reads, in its own order.
hpcc_input()
{
	cat <<END
HPLinpack benchmark input file
by fabtests/clients/run
HPL.out output file name
8 device out
1 problem sizes
$1 Ns
1 block sizes
40 NBs
0 PMAP
1 process grids
$2 Ps
$3 Qs
16.0 threshold
1 panel factorizations
2 PFACTs
1 stopping criteria
4 NBMINs
1 panels in recursion
2 NDIVs
1 recursive factorizations
1 RFACTs
1 broadcasts
1 BCASTs
1 lookahead depths
1 DEPTHs
2 SWAP
64 swapping threshold
0 L1
0 U
1 Equilibration
8 alignment
this line is ignored
0 further sizes for PTRANS
0
0 further block sizes for PTRANS
0
END
}

# hpcc_good FILE RANKS: what hpcc says of its own results. Says what is wrong.
hpcc_good()
{
	awk -v ranks="$2" '
	function bad(text) { print "hpcc: " text; wrong = 1 }
	/^Success=/ { success = substr($0, 9) }
	/^CommWorldProcs=/ { procs = substr($0, 16) }
	/^\\|\\|Ax-b.*PASSED/ { solved++ }
	/^Found [0-9]+ errors/ { updates++; if ($2 != 0) bad($0) }
	/^MPIRandomAccess(_LCG)?_Errors=/ { errors++; if (!/=0$/) bad($0) }
	/^MPIFFT_maxErr=/ { split($0, v, "="); fft++; if (!(v[2] + 0 < 1e-9)) bad($0) }
	/^PTRANS_residual=/ { split($0, v, "="); ptrans++; if (!(v[2] + 0 < 16)) bad($0) }
	/ tests completed and failed residual checks/ { if ($1 != 0) bad($0) }
	/ tests completed and passed residual checks/ { passed += $1 }
	END {
		if (success != 1) bad("does not say that it succeeded")
		if (procs != ranks) bad("ran on " procs + 0 " ranks, not " ranks)
		if (!solved) bad("no residual of the solved system")
		if (updates < 4 || errors < 2) bad("random updates were not checked")
		if (!fft || !ptrans || passed < 2) bad("transforms were not checked")
		exit wrong
	}' "$1"
}

# hpcc_job PROVIDER TRANSPORT LOG RANKS N P Q
hpcc_job()
{
	local provider=$1 transport=$2 log=$3 ranks=$4 dir
	shift 4

	dir=$(mktemp -d "$scratch/hpcc.XXXXXX") || return
	hpcc_input "$@" >"$dir/hpccinf.txt"
	job_run "$provider" "$transport" "$ranks" "$log" --wdir "$dir" "$(command -v hpcc)" ||
		return
	hpcc_good "$dir/hpccoutf.txt" "$ranks" >>"$log" 2>&1
}

# netpipe_job PROVIDER TRANSPORT LOG OPTION...: all sizes of a ping-pong, contents checked.
netpipe_job()
{
	local provider=$1 transport=$2 log=$3
	shift 3

	job_run "$provider" "$transport" 2 "$log" NPopenmpi -i -o "$scratch/np.out" "$@" ||
		return
	[ "$(grep -c 'Integrity check passed' "$log")" -ge 20 ] &&
		! grep -qi 'check failed' "$log" && return
	say 'fewer than 20 sizes passed the integrity check' >>"$log"
	return 99
}

hpcc_run()
{
	client_test 'hpcc 2 ranks' mtl hpcc_job 2 300 1 2
	client_test 'hpcc 4 ranks' mtl hpcc_job 4 400 2 2
	client_test 'netpipe' mtl netpipe_job -u 4000000
	client_test 'netpipe, preposted' mtl netpipe_job -a -u 4000000
	client_test 'netpipe, any source, synchronous' mtl netpipe_job -z -S -u 1000000
	client_test 'netpipe, both directions' mtl netpipe_job -a -2 -u 1000000
}

tools_need()
{
	need_client fi_info libfabric-bin
	need_client fi_pingpong libfabric-bin
	need_client fi_strerror libfabric-bin
}

# tool_job PROVIDER TRANSPORT LOG PATTERN COMMAND...: PATTERN must be in what it says;
# PROVIDER stands for the provider's name in both.
tool_job()
{
	local provider=$1 log=$3 pattern=$4
	shift 4

	timeout -k 5 "$timeout" "${@//PROVIDER/$provider}" >"$log" 2>&1 </dev/null || return
	grep -qE "${pattern//PROVIDER/$provider}" "$log" && return
	say "nothing in this fits ${pattern//PROVIDER/$provider}" >>"$log"
	return 1
}

# pingpong_job PROVIDER TRANSPORT LOG
pingpong_job()
{
	WEFT_TEST_PROVIDER=$1 timeout -k 5 "$timeout" "$top/fabtests/own/pingpong.t" >"$3" 2>&1
}

tools_run()
{
	client_test 'fi_info' none tool_job '^provider: PROVIDER' fi_info -p PROVIDER
	client_test 'fi_info -l' none tool_job '^PROVIDER:$' fi_info -l
	client_test 'fi_info -v' none tool_job 'prov_name: PROVIDER' \
		fi_info -v -p PROVIDER -t FI_EP_RDM
	client_test 'fi_info of a node' none tool_job '^provider: PROVIDER' \
		fi_info -p PROVIDER -n 127.0.0.1 -P 7000 -t FI_EP_RDM
	client_test 'fi_info by capability' none tool_job '^provider: PROVIDER' \
		fi_info -p PROVIDER -t FI_EP_RDM -c 'FI_TAGGED|FI_RMA'
	if [ "$provider" = weft ]; then
		client_test 'fi_info -e' none tool_job 'FI_WEFT_EAGER_SIZE' fi_info -e
	fi
	client_test 'fi_strerror' none tool_job 'No data available' fi_strerror 61
	client_test 'fi_pingpong' none pingpong_job
}
