# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Output of the fabtests scripts.

say()
{
	printf '%s\n' "$*"
}

# die STATUS MESSAGE...
die()
{
	local status=$1

	shift
	printf 'fabtests: %s\n' "$*" >&2
	exit "$status"
}
