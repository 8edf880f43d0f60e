# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Which command lines there are, which are selected, and which are left out.

# What the provider must pass, as upstream 1.13.1 calls them. Kinds: unit (runs alone),
# nodata (alone, must end with FI_ENODATA), pair (server and client). fi_cq_data has no -o
# before 1.17: it sends; data with a write is in fi_rma_bw -o writedata.
core_lines=(
	'unit fi_getinfo_test -s SERVER_ADDR GOOD_ADDR'
	'unit fi_av_test -g GOOD_ADDR -n 1 -s SERVER_ADDR'
	'unit fi_dom_test -n 2'
	'unit fi_eq_test'
	'unit fi_cq_test'
	'unit fi_mr_test'
	'unit fi_cntr_test'
	'nodata fi_rdm g00n13s'
	'pair fi_rdm'
	'pair fi_rdm -U'
	'pair fi_av_xfer -e rdm'
	'pair fi_cq_data -e rdm'
	'pair fi_multi_recv -e rdm'
	'pair fi_recv_cancel -e rdm -V'
	'pair fi_unexpected_msg -e rdm -i 10'
	'pair fi_inj_complete -e rdm'
	'pair fi_bw -e rdm -v -T 1'
	'pair fi_rdm_cntr_pingpong'
	'pair fi_rdm_pingpong -v'
	'pair fi_rdm_tagged_pingpong -v'
	'pair fi_rdm_tagged_bw -v'
	'pair fi_rdm_atomic -I 5 -o all'
	'pair fi_rdm_atomic -I 5 -o all -U'
	'pair fi_rma_bw -e rdm -o write -v'
	'pair fi_rma_bw -e rdm -o read -v'
	'pair fi_rma_bw -e rdm -o writedata -v'
)

# set_lines SCRIPT ARRAY KIND: the lines of one of the arrays in upstream's script.
set_lines()
{
	sed -n "/^$2=(/,/^)/s/^[[:space:]]*\"\(.*\)\"[[:space:]]*\$/$3 \1/p" "$1"
}

# lines_select LIST SCRIPT: fills the array `lines`.
lines_select()
{
	local list=$1 script=$2 line

	if [ "$list" = core ]; then
		lines=("${core_lines[@]}")
		return
	fi
	[ -r "$script" ] || die 1 "no $script, which holds upstream's lists"
	while read -r line; do
		[[ ${line#* } =~ $list ]] && lines+=("$line")
	done < <({
		printf '%s\n' "${core_lines[@]}"
		set_lines "$script" unit_tests unit
		set_lines "$script" neg_unit_tests nodata
		set_lines "$script" functional_tests pair
		set_lines "$script" short_tests pair
		set_lines "$script" standard_tests pair
	} | awk '!seen[$0]++')
	[ ${#lines[@]} -gt 0 ] || die 2 "--list '$list': no command line matches; see --show with --list ."
}

# excludes_read FILE: lines "REGEX # reason" into the arrays exclude_res, exclude_why. A
# line without a reason is an error; a missing file is an empty one.
excludes_read()
{
	local line n=0

	exclude_res=() exclude_why=()
	[ -f "$1" ] || return 0
	while IFS= read -r line || [ -n "$line" ]; do
		n=$((n + 1))
		case $line in
		'' | '#'*) continue ;;
		*[![:space:]]*' # '?*) ;;
		*)
			say "$1:$n: an exclude line is 'REGEX # reason', got '$line'" >&2
			return 1
			;;
		esac
		exclude_res+=("${line%%' # '*}")
		exclude_why+=("${line#*' # '}")
	done <"$1"
}

# Prints the reason when the command line is excluded.
exclude_reason()
{
	local i

	for i in "${!exclude_res[@]}"; do
		[[ $1 =~ ${exclude_res[i]} ]] || continue
		say "${exclude_why[i]}"
		return 0
	done
	return 1
}
