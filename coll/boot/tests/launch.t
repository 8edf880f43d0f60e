#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ranks that others than weft run started find each other: by the variables of torchrun,
# Slurm and MPICH, set by hand, under the mpirun that is there, by PMIx, and under MPICH's
# mpiexec.
set -u

build=${WEFT_TOP_BUILDDIR:-.}
rank=$build/cli/tests/rank_boot
tmp=$(mktemp -d) || exit 99
trap '[ $BASHPID = $$ ] && rm -rf "$tmp"' EXIT
n=0
failed=0

ok() { # STATUS NAME
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $n - $2"
	else
		failed=1
		echo "not ok $n - $2"
		tail -n 5 "$tmp"/out* | cut -c 1-200 | sed 's/^/# /'
	fi
}

skip() { # NAME WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# by_hand NAME SIZE VARIABLE...: RANK in a variable's value stands for the rank
by_hand() {
	local name=$1 size=$2 r bad=0
	local -a pids=()

	shift 2
	for ((r = 0; r < size; r++)); do
		env "${@//@/$r}" timeout 120 "$rank" >"$tmp/out$r" 2>&1 &
		pids+=($!)
	done
	for r in "${pids[@]}"; do
		wait "$r" || bad=1
	done
	[ "$(cat "$tmp"/out* | grep -c "knows $size of $size")" -eq "$size" ] || bad=1
	ok "$bad" "$name"
	rm -f "$tmp"/out*
}

unset WEFT_RANK WEFT_SIZE WEFT_ROOT WEFT_ROOT_FD WEFT_JOB "${!PMIX_@}" "${!OMPI_@}" \
	"${!SLURM_@}" "${!PMI_@}"
# All ranks are here: Open MPI needs no ssh for that, but ends where there is none.
export OMPI_MCA_plm_rsh_agent=true
# What PMIx's own library leaves at the end is not what a sanitizer is to look for here.
echo leak:libpmix >"$tmp/leaks"
export LSAN_OPTIONS="${LSAN_OPTIONS:+$LSAN_OPTIONS:}suppressions=$tmp/leaks:print_suppressions=0"
# An address of this host that nobody else has in mind.
by_hand "torchrun's variables" 3 RANK=@ WORLD_SIZE=3 MASTER_PORT=23456 \
	MASTER_ADDR=127.$((RANDOM % 250 + 1)).$((RANDOM % 250 + 1)).$((RANDOM % 250 + 1)) \
	TORCHELASTIC_RUN_ID=$$
by_hand "Slurm's" 3 SLURM_PROCID=@ SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NUM_NODES=1 \
	SLURM_JOB_ID=$$ SLURM_STEP_ID=$RANDOM
by_hand "MPICH's" 2 PMI_RANK=@ PMI_SIZE=2 MPI_LOCALNRANKS=2 PMI_ID=$$.$RANDOM

# mpi RANKS PROGRAM: under mpirun. Each has a session folder of its own: of those that share
# one, who ends takes it away from who begins, and that one says orte_session_dir failed.
mpi()
{
	local dir

	dir=$(mktemp -d "$tmp/m.XXXX") &&
		TMPDIR=$dir timeout 120 mpirun --allow-run-as-root --oversubscribe -n "$@"
}

pmix=$(grep -c '^#define HAVE_PMIX 1' "$build/config.h")
if ! command -v mpirun >/dev/null 2>&1; then
	skip "mpirun, by PMIx" "no mpirun"
	skip "and again" "no mpirun"
elif [ "$pmix" -eq 0 ]; then
	skip "mpirun, by PMIx" "built without PMIx"
	skip "and again" "built without PMIx"
else
	for again in "mpirun, by PMIx" "and again, two jobs at once"; do
		mpi 3 "$rank" >"$tmp/out" 2>&1 &
		other=$!
		mpi 4 "$rank" >"$tmp/out2" 2>&1
		status=$?
		wait "$other" || status=1
		[ "$(grep -c "knows 3 of 3" "$tmp/out")" -eq 3 ] || status=1
		[ "$(grep -c "knows 4 of 4" "$tmp/out2")" -eq 4 ] || status=1
		ok $status "$again"
	done
fi

# By its full name: mpiexec may be Open MPI's.
if ! command -v mpiexec.hydra >/dev/null 2>&1; then
	skip "mpiexec of MPICH" "no mpiexec.hydra (Debian: mpich)"
else
	timeout 120 mpiexec.hydra -n 4 "$rank" >"$tmp/out2" 2>&1 &
	other=$!
	timeout 120 mpiexec.hydra -n 3 "$rank" >"$tmp/out" 2>&1
	status=$?
	wait "$other" || status=1
	[ "$(grep -c "knows 3 of 3" "$tmp/out")" -eq 3 ] || status=1
	[ "$(grep -c "knows 4 of 4" "$tmp/out2")" -eq 4 ] || status=1
	ok $status "mpiexec of MPICH, two jobs at once"
fi

# A communicator of MPI that the program has: an all-gather of its own.
cat >"$tmp/mpi.c" <<'END'
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <weft/weft.h>

static int gather(void *arg, const void *in, void *out, size_t len, int64_t timeout_us)
{
	(void)timeout_us; /* MPI has none */
	return len > INT_MAX || MPI_Allgather(in, (int)len, MPI_BYTE, out, (int)len,
					      MPI_BYTE, *(MPI_Comm *)arg) != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	struct weft_boot_callbacks boot = {.allgather = gather};
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct weft_comm *all;
	struct weft_ctx *ctx;
	int rank, sum = 0;
	MPI_Comm own;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	/* The others, in the opposite order. */
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &own);
	MPI_Comm_rank(own, &boot.rank);
	MPI_Comm_size(own, &boot.size);
	boot.arg = &own;
	opts.boot = &boot;
	if (weft_ctx_open(&opts, &ctx) || weft_comm_create(ctx, NULL, &all) ||
	    weft_allreduce(all, &rank, &sum, 1, WEFT_INT32, WEFT_SUM, NULL) ||
	    weft_comm_destroy(all) || weft_ctx_close(ctx)) {
		fprintf(stderr, "%s\n", weft_error_detail());
		return 1;
	}
	printf("sum %d of %d\n", sum, (int)boot.size);
	MPI_Finalize();
	return 0;
}
END
if ! command -v mpicc >/dev/null 2>&1 || ! command -v mpirun >/dev/null 2>&1; then
	skip "an MPI communicator" "no mpicc or no mpirun"
elif [ ! -e "$build/.libs/libweft.so" ] || [ -n "${WEFT_TEST_SHORT-}" ]; then
	skip "an MPI communicator" "a build with sanitizers, or without libweft.so"
else
	mpicc -o "$tmp/mpi" "$tmp/mpi.c" -I"${WEFT_TOP_SRCDIR:-.}/include" -L"$build/.libs" \
		-Wl,-rpath,"$build/.libs" -lweft >"$tmp/out" 2>&1 &&
		FI_PROVIDER=tcp mpi 4 "$tmp/mpi" >"$tmp/out" 2>&1 &&
		[ "$(grep -c -e 'sum 2 of 2' -e 'sum 4 of 2' "$tmp/out")" -eq 4 ]
	ok $? "an MPI communicator"
fi
echo "1..$n"
exit $failed
