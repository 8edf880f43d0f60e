# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Open MPI: the programs of mpi/, one per area, over its transports that use libfabric.
# Variables of the script that sources this: clients, top, build, scratch, provider, short,
# only, list.
# shellcheck disable=SC2154

openmpi_areas=(p2p coll types onesided probe threads spawn)

openmpi_need()
{
	local tool

	for tool in mpirun:openmpi-bin mpicc:libopenmpi-dev fi_info:libfabric-bin; do
		command -v "${tool%:*}" >/dev/null ||
			die 77 "no ${tool%:*}: install it (Debian and Ubuntu: apt-get" \
				"install ${tool#*:})"
	done
	mpirun --version 2>/dev/null | grep -q 'Open MPI' ||
		die 77 "mpirun here is not Open MPI's: install it (Debian and Ubuntu:" \
			"apt-get install openmpi-bin libopenmpi-dev), or put it first into PATH"
}

openmpi_build()
{
	local out=$build/fabtests/clients area

	mkdir -p "$out"
	for area in "${openmpi_areas[@]}"; do
		mpicc -std=gnu11 -Wall -Wextra -Werror -O1 -g -I"$top" -o "$out/$area" \
			"$clients/mpi/$area.c" "$clients/mpi/check.c" -lpthread \
			>"$scratch/mpicc.log" 2>&1 || {
			cat "$scratch/mpicc.log" >&2
			die 1 "mpicc cannot build fabtests/clients/mpi/$area.c"
		}
	done
}

# openmpi_job PROVIDER TRANSPORT LOG RANKS AREA [OPTION...]
openmpi_job()
{
	local provider=$1 transport=$2 log=$3 ranks=$4 area=$5
	shift 5

	job_run "$provider" "$transport" "$ranks" "$log" "$@" \
		"$build/fabtests/clients/$area" || return
	# A program that ended well without a word has tested nothing.
	grep -qE "^$area: $ranks ranks, [1-9][0-9]* checks, 0 failed\$" "$log" && return
	say "no line with the figures of $area over $ranks ranks" >>"$log"
	return 99
}

# openmpi_test TRANSPORT RANKS AREA [OPTION...]
openmpi_test()
{
	local name="$1 $3 $2 ranks"

	[ $# -eq 3 ] || name+=" (${*: -1})"
	client_test "$name" "$1" openmpi_job "${@:2}"
}

# What btl ofi asks for.
btl_can()
{
	[ "$list" = no ] || return 0
	fi_info -p "$provider" -t FI_EP_RDM -c 'FI_MSG|FI_RMA|FI_ATOMIC' >/dev/null 2>&1
}

# Left out is what Open MPI 4.1 does wrong whatever carries it (its own shared memory, or
# libfabric's sockets): pml ob1 reads a large message whole into a receive that is too
# short for it; osc rdma waits for ever for memory that was attached on another host; osc
# pt2pt over btl ofi, with four ranks that swap one value, waits within its own callback.
btl_run()
{
	local ranks=(2 4 8) n area

	[ $short = no ] || ranks=(2)
	for n in "${ranks[@]}"; do
		openmpi_test btl "$n" p2p -x CLIENT_SKIP=truncation
		for area in coll types probe; do
			openmpi_test btl "$n" $area
		done
		openmpi_test btl "$n" onesided -x CLIENT_SKIP=swap --mca osc pt2pt
		openmpi_test btl "$n" onesided --mca osc_rdma_btls ofi --mca osc rdma
		[ "$n" -eq 8 ] || openmpi_test hosts "$n" onesided -x CLIENT_SKIP=dynamic \
			--mca osc_rdma_btls ofi --mca osc rdma
	done
	openmpi_test btl 2 threads
	[ $short = yes ] || openmpi_test btl 2 spawn
}

# By the contexts of a scalable endpoint, which btl ofi takes wherever it finds them. Not
# with mtl_ofi_thread_grouping: then a thread that waits for messages of two communicators
# waits for ever, whatever carries them (libfabric's sockets too).
sep_run()
{
	local area

	[ "$list" = yes ] ||
		fi_info -p "$provider" -t FI_EP_RDM -c 'FI_TAGGED|FI_NAMED_RX_CTX' \
			>/dev/null 2>&1 || return 0
	for area in p2p coll threads; do
		openmpi_test mtl 2 $area --mca mtl_ofi_num_ctxts 3 \
			-x OMPI_MCA_mtl_ofi_enable_sep=1
	done
}

openmpi_run()
{
	local ranks=(2 3 4 8) n area

	[ $short = no ] || ranks=(2 4)
	[ "$list" = yes ] || openmpi_build
	for n in "${ranks[@]}"; do
		for area in p2p coll types probe; do
			openmpi_test mtl "$n" $area
		done
		openmpi_test mtl "$n" onesided --mca osc pt2pt
	done
	# More threads than this on few processors only wait for each other.
	openmpi_test mtl 2 threads
	[ $short = yes ] || openmpi_test mtl 4 threads
	openmpi_test mtl 2 spawn
	sep_run
	if btl_can; then
		btl_run
	else
		say "not run: btl ofi: the provider $provider has no FI_RMA and FI_ATOMIC"
	fi
}
