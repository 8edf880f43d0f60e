# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# One MPI job: its command line for a provider, its namespaces, and whether that provider
# was really used. Variables of the script that sources this: provider, timeout, scratch,
# tests_env.
# shellcheck disable=SC2154

# Sets isolate: a command in front of a job that gives it PIDs of its own, so that nothing
# outlives it, and a network and a /dev/shm of its own. Where that is refused, nothing.
isolate=()
job_isolate()
{
	local try=(unshare --pid --mount --net --fork --kill-child --mount-proc)

	[ "$(id -u)" = 0 ] || try+=(--user --map-root-user)
	if command -v ip >/dev/null && "${try[@]}" true 2>/dev/null; then
		# shellcheck disable=SC2016 # for the inner shell
		isolate=("${try[@]}" bash -c 'ip link set lo up &&
			mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec "$@"' job)
	else
		say 'namespaces are refused here: the jobs run without'
	fi
}

# client_test NAME TRANSPORT FUNCTION ARGUMENT...: calls FUNCTION PROVIDER TRANSPORT LOG
# ARGUMENT..., which returns 0 when all is well, and once more for tcp over mtl when not.
client_test()
{
	local name=$1 transport=$2 run=$3 begin status took log=$scratch/job.log note
	shift 3

	[[ $name == *"$only"* ]] || return 0
	if [ "$list" = yes ]; then
		say "$name"
		return
	fi
	begin=$(clock)
	"$run" "$provider" "$transport" "$log" "$@"
	status=$?
	took=$(($(clock) - begin))
	if [ $status = 0 ]; then
		result_put pass "$name" $took
		return
	fi
	note=$(status_text $status)
	if [ "$provider" != tcp ] && ! "$run" tcp mtl "$scratch/tcp.log" "$@"; then
		result_put same "$name" $took "$note"
	else
		result_put fail "$name" $took "$note"
	fi
	log_show "$log"
}

# transport_options TRANSPORT: options of mpirun into the array options. pml cm knows only
# mtl ofi and pml ob1 only the btls that are named: no job can fall back to another way.
transport_options()
{
	case $1 in
	mtl) options+=(--mca pml cm --mca mtl ofi) ;;
	btl) options+=(--mca pml ob1 --mca btl self,ofi --mca btl_ofi_mode 2) ;;
	esac
}

# job_run PROVIDER TRANSPORT RANKS LOG ARGUMENT...: mpirun with the arguments (options and
# the program). Exit status 99: it ended well, but without the provider.
job_run()
{
	local provider=$1 transport=$2 ranks=$3 log=$4 options vars status
	shift 4

	vars=("${tests_env[@]}" FI_PROVIDER="$provider" TMPDIR="$scratch"
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
	# mtl ofi asks for FI_REMOTE_COMM, although all ranks are on this host.
	[ "$provider" != weft ] || vars+=(FI_WEFT_CLAIM_REMOTE=1 CLIENT_MUST_MAP=memfd:weft)
	options=(--oversubscribe --bind-to none -n "$ranks"
		--mca opal_common_ofi_verbose 1)
	[ "$ranks" -le "$(nproc)" ] || options+=(--mca mpi_yield_when_idle 1)
	transport_options "$transport"
	options+=(--mca "${transport}_ofi_provider_include" "${provider%%;*}")
	timeout -k 5 "$timeout" "${isolate[@]}" env "${vars[@]}" \
		mpirun "${options[@]}" "$@" >"$log" 2>&1 </dev/null
	status=$?
	if [ $status = 0 ] && ! job_used "$provider" "$transport" "$ranks" "$log"; then
		status=99
	fi
	return $status
}

# job_used PROVIDER TRANSPORT RANKS LOG: what Open MPI said, of every rank.
job_used()
{
	[ "$(grep -c "$2:ofi:prov: $1" "$4")" -ge "$3" ] && return
	say "fewer than $3 ranks said that $2 ofi uses the provider $1" >>"$4"
	return 1
}
