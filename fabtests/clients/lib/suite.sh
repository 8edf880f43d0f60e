# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The MPI test suite that the distribution's mpich source package carries, built with Open
# MPI's compiler by the suite's own configure and make, and run test by test over a
# provider. What of it is run, and what not and why, is in suite/. Variables of the script
# that sources this: clients, build, scratch, provider, only, list, timeout.
# shellcheck disable=SC2154

# Folders of the suite whose tests are run.
suite_folders=(attr coll comm datatype errhan group info init pt2pt rma threads/pt2pt topo)

mpisuite_need()
{
	openmpi_need
}

# Into suite_tree: the configured suite, from the cache or made now.
suite_obtain()
{
	local cache=$build/fabtests version work

	version=$(mpirun --version | sed -n 's/.*(Open MPI) //p')
	suite_tree=$cache/mpisuite-openmpi-$version
	[ ! -e "$suite_tree/complete" ] || return 0
	mkdir -p "$cache" && work=$(mktemp -d "$cache/work.XXXXXX") || return 1
	if mpich_fetch "$work" && suite_configure "$work/mpich/test/mpi"; then
		rm -rf "$suite_tree"
		mv "$work/mpich/test/mpi" "$suite_tree" && : >"$suite_tree/complete"
	fi
	rm -rf "$work"
	[ -e "$suite_tree/complete" ]
}

# Its libraries are built too. It still uses some calls that MPI 3 took away; Open MPI has
# them in its library and hides their declarations unless it is told not to.
suite_flags='-O1 -w -DOMPI_OMIT_MPI1_COMPAT_DECLS=0'
suite_configure()
{
	say 'configuring the MPI test suite (about a minute, once)'
	(
		cd "$1" && ./configure --with-mpi=/usr --disable-fortran --disable-cxx \
			CC=mpicc && make -C util CFLAGS="$suite_flags" &&
			make -C dtpools CFLAGS="$suite_flags"
	) >"$1/weft.log" 2>&1 && return
	tail -n 40 "$1/weft.log" >&2
	say 'the MPI test suite could not be configured or built (end of its log above)' >&2
	return 1
}

# suite_excluded TEST: its reason.
suite_excluded()
{
	local i

	for i in "${!exclude_res[@]}"; do
		[[ $1 =~ ${exclude_res[i]} ]] || continue
		say "${exclude_why[i]}"
		return 0
	done
	return 1
}

# suite_job PROVIDER TRANSPORT LOG FOLDER RANKS PROGRAM [ARGUMENT...]: one test. It says " No
# Errors" when it found none; an exit status of 0 is not enough.
suite_job()
{
	local provider=$1 transport=$2 log=$3 folder=$4 ranks=$5 program=$6
	shift 6

	job_run "$provider" "$transport" "$ranks" "$log" --mca osc pt2pt --wdir \
		"$suite_tree/$folder" "./$program" "$@" || return
	grep -q '^ *No Errors' "$log" && return
	say 'the test did not say "No Errors"' >>"$log"
	return 99
}

# suite_test FOLDER PROGRAM RANKS [NAME=VALUE...]: a line of the suite's lists.
suite_test()
{
	local folder=$1 program=$2 ranks=$3 word args=() name="$1/$2 $3 ranks" why
	shift 3

	for word in "$@"; do
		case $word in
		# Settings of MPICH mean nothing to Open MPI: the test has another line.
		env=MPIR_CVAR_* | env=MPIX_*) return ;;
		arg=*) args+=("${word#arg=}") ;;
		esac
	done
	[ ${#args[@]} -eq 0 ] || name+=" ${args[*]}"
	[[ mpisuite/$name == *"$only"* ]] || return 0
	if why=$(suite_excluded "$name"); then
		[ "$list" = no ] || say "not run: $name: $why"
		suite_left_out=$((suite_left_out + 1))
		return
	fi
	if [ "$list" = no ] && ! make -C "$suite_tree/$folder" CFLAGS="$suite_flags" "$program" \
		>"$scratch/make.log" 2>&1; then
		# What this Open MPI doesn't have yet or any more is nobody's failure.
		why=$(grep -oE "undefined reference to .MPIX?_\w+|error: .MPIX?_\w+. undeclared" \
			"$scratch/make.log" | grep -oE 'MPIX?_\w+' | head -n 1)
		if [ -n "$why" ]; then
			say "not run: $name: Open MPI has no $why"
			suite_left_out=$((suite_left_out + 1))
			return
		fi
		result_put fail "mpisuite/$name" 0 'cannot be built'
		log_show "$scratch/make.log"
		return
	fi
	client_test "mpisuite/$name" mtl suite_job "$folder" "$ranks" "$program" "${args[@]}"
}

mpisuite_run()
{
	local folder words

	suite_obtain || {
		missing=yes
		return
	}
	exclude_res=() exclude_why=() suite_left_out=0
	excludes_read "$clients/suite/exclude" || exit 1
	for folder in "${suite_folders[@]}"; do
		[ -r "$suite_tree/$folder/testlist" ] || continue
		while read -ra words; do
			[[ ${words[0]:-#} == '#'* ]] || suite_test "$folder" "${words[@]}"
		done <"$suite_tree/$folder/testlist"
	done
	say "mpisuite: $suite_left_out tests left out (the reasons: above and in" \
		"fabtests/clients/suite/exclude)"
}
