# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the benchmark scripts share: where things are, errors, small figures.
# Exit status of all of them: 0 good, 1 something failed, 2 wrong usage or something that
# is needed is not installed.

# Figures are read and written with a point, whatever the user's language.
export LC_ALL=C
bench_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
top=$(dirname "$bench_dir")
build=${WEFT_TOP_BUILDDIR:-$top/build}
bench_name=$(basename "$0")
# Who speaks, as people call it: the folder that it is in, and its name.
said_by=$(cd "$(dirname "$0")" && pwd)
said_by=${said_by#"$top/"}/$bench_name

say()
{
	printf '%s\n' "$*"
}

# die STATUS MESSAGE...
die()
{
	local status=$1

	shift
	printf '%s: %s\n' "$said_by" "$*" >&2
	exit "$status"
}

# Progress and remarks: beside the table, or beside the JSON document.
note()
{
	printf '%s\n' "$*" >&2
}

# need_tool TOOL PACKAGE: what is asked for must be installed; nothing is installed here.
need_tool()
{
	command -v "$1" >/dev/null 2>&1 ||
		die 2 "$1 was not found: install it (Debian and Ubuntu: apt-get install $2)"
}

# need_built PROGRAM: a program of the build tree, relative to it.
need_built()
{
	[ -x "$build/$1" ] ||
		die 2 "no $1 in $build: build first (make), or set WEFT_TOP_BUILDDIR"
}

# The provider of this tree, not one that is installed somewhere.
use_built_provider()
{
	export FI_PROVIDER_PATH=${FI_PROVIDER_PATH:-$build/prov}
	[ -e "$FI_PROVIDER_PATH/libweft-fi.so" ] ||
		die 2 "no libweft-fi.so in $FI_PROVIDER_PATH: build first (make)," \
			"or set FI_PROVIDER_PATH"
}

# cpus_choose N: N of the processors that are allowed, with commas: first one of each core,
# then the others.
cpus_choose()
{
	local cpu first list=() others=()

	for cpu in $(cpus_allowed); do
		first=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" \
			2>/dev/null)
		first=${first%%[,-]*}
		if [ -z "$first" ] || [ "$first" = "$cpu" ]; then
			list+=("$cpu")
		else
			others+=("$cpu")
		fi
	done
	list+=("${others[@]}")
	(IFS=, && printf '%s\n' "${list[*]:0:$1}")
}

# cpus_cores: of how many cores there are processors among those.
cpus_cores()
{
	local cpu

	for cpu in $(cpus_allowed); do
		cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null ||
			echo "$cpu"
	done | sort -u | wc -l
}

# One to a line.
cpus_allowed()
{
	local part

	awk '$1 == "Cpus_allowed_list:" { gsub(",", "\n", $2); print $2 }' /proc/self/status |
		while read -r part; do
			seq "${part%-*}" "${part#*-}"
		done
}

# need_wire NAME: the ways between two processes that there are.
need_wire()
{
	case $1 in
	shm | uet) ;;
	verbs)
		# Emulated ones are good for counting what is above them.
		[ -n "${EMUVERBS_CONFIG:-}" ] ||
			compgen -G '/sys/class/infiniband/*' >/dev/null ||
			die 2 "no RDMA device here: run it on a machine that has one, or" \
				"inside fabtests/softroce/run, which makes one; instructions" \
				"can be counted over fabtests/emuverbs/run"
		ulimit -l unlimited 2>/dev/null
		;;
	*) die 2 "no wire '$1'; there are: shm, verbs, uet" ;;
	esac
}

# Sets side_env, a command in front of a program that has it use the provider and wire:
# side_env_set PROVIDER WIRE. A peer's processes do not even load Weft.
side_env_set()
{
	side_env=(env)
	if [ "$1" = weft ]; then
		[ "$2" = shm ] || side_env+=(FI_WEFT_WIRE="$2" FI_WEFT_SHM=0)
		return
	fi
	side_env+=(-u FI_PROVIDER_PATH)
	# As large a job as there is here: else its queue is longer than small devices allow.
	[[ $1 != *ofi_rxm* ]] || side_env+=(FI_UNIVERSE_SIZE="${FI_UNIVERSE_SIZE:-2}")
}

# is_count TEXT MOST
is_count()
{
	[[ $1 =~ ^[1-9][0-9]{0,8}$ ]] && [ "$1" -le "$2" ]
}

# split_options ARGUMENT...: sets args, with --name=value made into two.
split_options()
{
	local a

	args=()
	for a in "$@"; do
		if [[ $a == --*=* ]]; then
			args+=("${a%%=*}" "${a#*=}")
		else
			args+=("$a")
		fi
	done
}

# Gives scratch, a directory that goes away with the script. Processes that a script
# starts in the background are its own to end: see jobs_end.
scratch_open()
{
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/weft-bench.XXXXXX") || die 1 "no scratch folder"
	trap '[ $BASHPID = $$ ] && { jobs_end; rm -rf "$scratch"; }' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

jobs_end()
{
	local pids

	pids=$(jobs -p)
	# shellcheck disable=SC2086 # a list
	[ -z "$pids" ] || kill $pids 2>/dev/null
}

# Where figures come from: printed above each table.
machine_line()
{
	local model

	model=$(awk -F': *' '/^model name/ { print $2; exit }' /proc/cpuinfo)
	printf '%s, %s processors allowed, load %s, Linux %s' "${model:-unknown processor}" \
		"$(nproc)" "$(cut -d' ' -f1 /proc/loadavg)" "$(uname -r)"
}
