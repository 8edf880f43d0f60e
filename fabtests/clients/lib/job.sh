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
# ARGUMENT..., which returns 0 when all is well, and once more for tcp when not. btl ofi
# takes no provider that stands on ofi_rxm, as tcp does: there is nothing to compare with.
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
	if [ "$provider" != tcp ] && [[ $transport == @(mtl|none) ]] &&
		! "$run" tcp mtl "$scratch/tcp.log" "$@"; then
		result_put same "$name" $took "$note"
	else
		result_put fail "$name" $took "$note"
	fi
	log_show "$log"
}

# transport_options TRANSPORT RANKS: options of mpirun into the array options. pml cm knows
# only mtl ofi and pml ob1 only the btls that are named: no job can fall back to another
# way. "hosts" is btl with each rank on a host of its own: else Open MPI would update its
# windows through memory that the ranks share, and never call the provider for that.
transport_options()
{
	local i hosts=''

	if [ "$1" = mtl ]; then
		options+=(--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include "$provider_name")
		return
	fi
	# shellcheck disable=SC2054 # one word
	options+=(--mca pml ob1 --mca btl self,ofi --mca btl_ofi_mode 2
		--mca btl_ofi_provider_include "$provider_name" --mca btl_base_verbose 1)
	if [ "$1" = hosts ]; then
		for ((i = 0; i < $2; i++)); do
			hosts+=${hosts:+,}host$i:1
		done
		options+=(--host "$hosts" --mca plm_rsh_agent "$clients/lib/host")
	fi
}

# job_run PROVIDER TRANSPORT RANKS LOG ARGUMENT...: mpirun with the arguments (options and
# the program). Exit status 99: it ended well, but without the provider.
job_run()
{
	local provider=$1 transport=$2 ranks=$3 log=$4 options vars status setting
	local provider_name=${1%%;*}
	shift 4

	vars=("${tests_env[@]}" FI_PROVIDER="$provider" TMPDIR="$scratch"
		OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1)
	# mtl ofi asks for FI_REMOTE_COMM, although all ranks are on this host.
	[ "$provider" != weft ] || vars+=(FI_WEFT_CLAIM_REMOTE=1 CLIENT_MUST_MAP=memfd:weft)
	options=(--oversubscribe --bind-to none -n "$ranks"
		--mca opal_common_ofi_verbose 1)
	[ "$ranks" -le "$(nproc)" ] || options+=(--mca mpi_yield_when_idle 1)
	transport_options "$transport" "$ranks"
	for setting in "${vars[@]}" FI_PROVIDER_PATH=; do
		options+=(-x "${setting%%=*}")
	done
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
	local said="mtl:ofi:prov: $1"

	# Of the btl it only says whom it reaches; it knows no other provider.
	[ "$2" = mtl ] || said="Using ofi btl for send to"
	[ "$(grep -c "$said" "$4")" -ge "$3" ] && return
	say "fewer than $3 ranks said that $2 ofi uses the provider $1" >>"$4"
	return 1
}
