# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What a list needs from the host before the guests start: programs. Variables of the
# script that sources this: top, build, softroce, provider.
# shellcheck disable=SC2154

# list_check FILE: says what is wrong with a list.
list_check()
{
	awk -v file="$1" '
		/^(#|$)/ { next }
		/^setting nics=[12] loss=[0-9.]+$/ { setting = 1; next }
		/^(floor|fab) [a-z_0-9]+/ || /^mpi [1-9][0-9]* [a-z0-9]+/ ||
			/^failover [1-9][0-9]*M$/ {
			if (setting) next
			print file ":" NR ": a test before the first setting"
			bad = 1
			next
		}
		{ print file ":" NR ": no line of a list: " $0; bad = 1 }
		END { exit bad }' "$1"
}

# list_show FILE ONLY: its tests, one a line, each with its setting before it.
list_show()
{
	local words setting=''

	while read -ra words; do
		case ${words[0]-} in
		'' | '#'*) ;;
		setting) setting=${words[*]:1} ;;
		*) [[ ${words[*]} != *"$2"* ]] || say "$setting ${words[*]}" ;;
		esac
	done <"$1"
}

# list_wants KIND: whether a list has such a line among those that are asked for.
list_wants()
{
	list_show "$softroce/lists/$list" "$only" | grep -qE "^nics=. loss=[0-9.]+ $1 "
}

# need_for TOOL PACKAGE
need_for()
{
	command -v "$1" >/dev/null ||
		die $cannot "no $1: install it (Debian and Ubuntu: apt-get install $2)"
}

# provider_need DIR: Weft's provider is there, and has the wire over these devices: it has the
# name of the library that it loads for it.
provider_need()
{
	[ -e "$1/libweft-fi.so" ] ||
		die 1 "no libweft-fi.so in $1: build first, or set FI_PROVIDER_PATH"
	grep -qF libibverbs.so.1 "$1/libweft-fi.so" ||
		die $cannot "the provider in $1 was built without infiniband/verbs.h (Debian and" \
			"Ubuntu: libibverbs-dev), so that it knows of no RDMA device: install that," \
			"configure and build again"
}

list_need()
{
	list_check "$softroce/lists/$list" >&2 || die 2 'the list is wrong'
	list_show "$softroce/lists/$list" "$only" | grep -q . ||
		die 2 "no test of $list has '$only' in its line; see --show"
	if list_wants floor; then
		need_for ib_send_lat perftest
	fi
	if list_wants mpi; then
		need_for mpirun openmpi-bin
		need_for mpicc libopenmpi-dev
	fi
	[ "$provider" != weft ] || provider_need "$FI_PROVIDER_PATH"
}

# list_prepare: builds and fetches, into the build tree.
list_prepare()
{
	if list_wants failover && ! [ -x "$build/fabtests/own/stream" ]; then
		die 1 "no fabtests/own/stream in $build: make check TESTS= builds it"
	fi
	if list_wants fab; then
		fabtests_obtain "$build" || die $cannot 'no fabtests (see above)'
		export FABTESTS_BIN
	fi
	if list_wants mpi; then
		openmpi_build
	fi
}
