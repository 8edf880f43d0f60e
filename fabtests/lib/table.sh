# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Totals, and the table of several providers side by side.

# results_count FILE: sets count_pass, count_skip, count_fail.
results_count()
{
	read -r count_pass count_skip count_fail < <(
		awk -F'\t' '{ n[$1]++ } END { print n["pass"] + 0, n["skip"] + 0, n["fail"] + 0 }' "$1"
	)
}

# results_table DIR PROVIDER...: from DIR/PROVIDER.results.
results_table()
{
	local dir=$1 name
	shift

	say ''
	printf '%-52s' test
	printf ' %12s' "$@"
	say ''
	awk -F'\t' -v dir="$dir" -v names="$*" '
		BEGIN {
			count = split(names, name, " ")
			for (i = 1; i <= count; i++) {
				file = dir "/" name[i] ".results"
				while ((getline < file) > 0) {
					if (!($3 in row)) {
						row[$3] = ++rows
						test[rows] = $3
					}
					cell[row[$3], i] = $1 " " $2
				}
				close(file)
			}
			for (r = 1; r <= rows; r++) {
				printf "%-52s", test[r]
				for (i = 1; i <= count; i++)
					printf " %12s", (r, i) in cell ? cell[r, i] : "-"
				print ""
			}
		}'
	printf '%-52s' 'pass/skip/fail'
	for name in "$@"; do
		results_count "$dir/$name.results"
		printf ' %12s' "$count_pass/$count_skip/$count_fail"
	done
	say ''
}
