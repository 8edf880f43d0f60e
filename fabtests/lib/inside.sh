#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The side of fabtests/upstream that is inside the namespaces: makes them fit (loopback,
# /dev/shm, scratch folder), then runs one provider's list. It is the namespace's first
# process: whatever a test leaves behind ends with it.
set -u

here=$(dirname "${BASH_SOURCE[0]}")
# shellcheck source=fabtests/lib/say.sh
. "$here/say.sh"
# shellcheck source=fabtests/lib/lists.sh
. "$here/lists.sh"
# shellcheck source=fabtests/lib/pair.sh
. "$here/pair.sh"
# shellcheck source=fabtests/lib/script.sh
. "$here/script.sh"
# shellcheck source=fabtests/netns/lib/pair.sh
. "$here/../netns/lib/pair.sh"

[ $# -ge 7 ] || die 2 "inside.sh is run by fabtests/upstream, never by hand"
provider=$1 list=$2 timeout=$3 show=$4 scratch=$5 bin=$6 exclude_dir=$7
ubertest_dir=$(cd "$here/../ubertest" && pwd)
shift 7

inside=
for ns in pid mnt net; do
	inside=$(readlink "/proc/self/ns/$ns")
	case ${WEFT_FABTESTS_OUTSIDE:-$inside} in
	*"$inside"*) die 1 "not in a $ns namespace of its own: run fabtests/upstream" ;;
	esac
done
unset WEFT_FABTESTS_OUTSIDE

loopback_up()
{
	if command -v ip >/dev/null; then
		ip link set lo up
	else
		ifconfig lo up
	fi
}

loopback_up || die 1 "loopback can't be brought up (iproute2 is needed)"
address=127.0.0.1 client_address=127.0.0.1
unset WEFT_NETNS_B
if [ -n "${WEFT_NETNS-}" ]; then
	# shellcheck disable=SC2086 # two words
	netns_make $WEFT_NETNS || die 1 "no second namespace"
	address=10.99.0.1 client_address=10.99.0.2
fi
mount -t tmpfs -o mode=1777,size=1g tmpfs /dev/shm || die 1 "no private /dev/shm"
# libfabric's provider for verbs reads all of it whenever a process loads the library, which
# is half of what a short test costs.
mount --bind /dev/null /proc/kallsyms 2>/dev/null || true
work=$scratch/work.$provider
results=$scratch/$provider.results
mkdir -p "$work" || die 1 "no working folder $work"
cd "$work" || die 1 "no working folder $work"
: >"$results"
for setting in "$@"; do
	export "${setting?}"
done

excludes_read "$exclude_dir/$provider" || exit 1

if [ "$list" = all ]; then
	[ "$show" = no ] || die 2 "--show knows core and regular expressions; 'all' is upstream's"
	script_run
else
	lines=()
	lines_select "$list" "$bin/runfabtests.sh" || exit 1
	for line in "${lines[@]}"; do
		if [ "$show" = yes ]; then
			say "$line"
		else
			line_run "$line"
		fi
	done
fi
