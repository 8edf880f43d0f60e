#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# fabtests/softroce/run without a virtual machine: what it refuses, what it says is
# missing, and that its lists are such as are run. tests/boot starts machines.
WEFT_TOP_SRCDIR=${WEFT_TOP_SRCDIR:-$(cd "$(dirname "$0")/../../.." && pwd)}
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99

softroce=$top/fabtests/softroce

# refused STATUS TEXT ARGUMENT...: no machine is started for these: that would take longer
# than the deadline, which is another status.
refused()
{
	local wanted=$1 text=$2 out status
	shift 2

	out=$(WEFT_TOP_BUILDDIR=$tmp timeout 20 "$softroce/run" "$@" 2>&1)
	status=$?
	[ "$status" = "$wanted" ] && [[ $out == *"$text"* ]] && return
	printf 'status %s, %s\n' "$status" "$out"
	return 1
}

ok 'a command is wanted' refused 2 'what is to be run'
ok 'an unknown option' refused 2 "no option '--nic'" --nic 1 true
ok 'three guests' refused 2 '--hosts wants 1 or 2' --hosts 3 true
ok 'an option without its value' refused 2 '--hosts needs a value' --hosts
ok 'no device' refused 2 '--nics wants' --nics=0 true
ok 'loss that is no number' refused 2 '--loss wants percent' --hosts 2 --loss some true
ok 'loss of all' refused 2 '--loss wants percent' --hosts 2 --loss 100 true
ok 'loss in one guest' refused 2 '--loss wants --hosts 2' --loss 1% true
ok 'a list in one guest' refused 2 'for two guests' --hosts 1 ci
ok 'a list with loss' refused 2 'losses of their own' --loss 1 ci
ok 'a choice of a command' refused 2 'for lists' --only x true
ok 'a deadline of nothing' refused 2 '--deadline wants' --deadline 0 true
ok 'a counted list' refused 2 'and no list' --counted ci
ok 'two counted guests' refused 2 'in one guest' --counted --hosts 2 true
ok 'two counted processors' refused 2 'of one processor' --counted --processors 2 true
ok 'an interface for no packet' refused 2 '--mtu wants' --mtu 80 true
ok 'a provider that is none' refused 2 "no provider's name" --provider 'a b' ci
# shellcheck disable=SC2016 # for the inner shell
ok 'no build tree' bash -c 'WEFT_TOP_BUILDDIR=/nowhere "$1" true 2>&1 |
	grep -q "no build tree /nowhere"' x "$softroce/run"
ok 'help' refused 0 'usage: fabtests/softroce/run' --help

# A machine that has only what scripts need: the packages are named.
mkdir "$tmp/bin"
for tool in bash env dirname awk grep sed uname cat mktemp rm; do
	ln -s "$(command -v $tool)" "$tmp/bin/$tool"
done
# bare_run TEXT: status 77 and the text, with nothing left in the temporary folder.
bare_run()
{
	local out status

	mkdir -p "$tmp/temp"
	out=$(PATH=$tmp/bin TMPDIR=$tmp/temp WEFT_TOP_BUILDDIR=$tmp "$softroce/run" true 2>&1)
	status=$?
	[ "$status" = 77 ] && [[ $out == *"$1"* ]] && [ -z "$(ls -A "$tmp/temp")" ] && return
	printf 'status %s, %s\n' "$status" "$out"
	return 1
}
if [ "$(uname -sm)" = 'Linux x86_64' ]; then
	ok 'what is missing is named' bare_run 'qemu-system-x86_64 (qemu-system-x86: '
else
	ok 'another machine is named' bare_run "this is $(uname -sm)"
fi

# shellcheck source=fabtests/lib/say.sh
. "$top/fabtests/lib/say.sh"
# shellcheck source=fabtests/softroce/lib/lists.sh
. "$softroce/lib/lists.sh"
good_list()
{
	list_check "$1" && [ "$("$softroce/run" --show "${1##*/}" | wc -l)" -gt 5 ]
}
ok 'ci is a list' good_list "$softroce/lists/ci"
ok 'full is a list' good_list "$softroce/lists/full"
ok 'failover is one' list_check "$softroce/lists/failover"
ok 'a checked stream of 1 GiB' test "$("$softroce/run" --show failover)" = \
	'nics=2 loss=0 failover 1024M'
ok 'ci has both settings of devices and of loss' test "$("$softroce/run" --show ci |
	cut -d' ' -f1,2 | sort -u | wc -l)" = 4
ok 'a choice of a list' test "$("$softroce/run" --only ib_send_lat --show ci |
	grep -vc ib_send_lat)" = 0

# bad_list WORDS...: is refused
bad_list()
{
	printf '%s\n' "$@" >"$tmp/list"
	! list_check "$tmp/list"
}
ok 'a line of no kind' bad_list 'setting nics=1 loss=0' 'test x'
ok 'a test without a setting' bad_list 'fab fi_rdm'
ok 'a setting that is none' bad_list 'setting nics=3 loss=0' 'fab fi_rdm'
ok 'an outage without its size' bad_list 'setting nics=2 loss=0' 'failover'
ok 'an outage of a kilobyte' bad_list 'setting nics=2 loss=0' 'failover 1K'
ok 'a job without ranks' bad_list 'setting nics=1 loss=0' 'mpi p2p'

# A server may take its time, but who has ended listens no more. The clock is what sleep says.
# shellcheck source=fabtests/softroce/guest/lib.sh
. "$softroce/guest/lib.sh"
# listens LISTENS ENDS LIMIT: by a server that listens from that second on, and ends at that one.
# shellcheck disable=SC2317,SC2329 # called by listening_await
listens()
{
	local from=$1 ends=$2

	awk() { [ "$SECONDS" -ge "$from" ]; }
	rdma() { :; }
	busybox() { [ "$SECONDS" -lt "$ends" ]; }
	sleep() { SECONDS=$((SECONDS + 2)); }
	SECONDS=0
	listening_await server "$3"
}
ok 'a server that is slow is waited for' eval '(listens 90 1000 240)'
ok 'one that has ended is not' eval '! (listens 90 20 240)'
ok 'nor one that never listens' eval '! (listens 1000 2000 240)'

# Guests that others leave no processor to are waited for; those that had it are not.
# shellcheck source=fabtests/softroce/lib/vm.sh
. "$softroce/lib/vm.sh"
# over SECONDS A B: of two guests that had so many seconds of a processor.
over()
{
	# shellcheck disable=SC2034 # boot_is_over's
	local boot_deadline=600 boot_busy=100 vm_pids=("$2" "$3")

	vm_busy() { say "$1"; }
	boot_is_over "$1"
}
ok 'a boot has its time' eval '! (over 599 500 500)'
ok 'one that had a processor for long is given up' eval '(over 600 100 150)'
ok 'both have to have had it' eval '! (over 6000 500 99)'
sleep 100 &
slept=$!
ok 'what a process has had is known' test "$(vm_busy $slept)" = 0
kill $slept

# A provider without this wire would fail in each test: it is named instead.
# shellcheck source=fabtests/softroce/lib/need.sh
. "$softroce/lib/need.sh"
# provider_refused STATUS TEXT
provider_refused()
{
	local out status

	out=$(provider_need "$tmp/prov" 2>&1)
	status=$?
	[ "$status" = "$1" ] && [[ $out == *"$2"* ]] && return
	printf 'status %s, %s\n' "$status" "$out"
	return 1
}
ok 'no provider' provider_refused 1 'build first'
mkdir "$tmp/prov"
printf 'a wire by libc.so.6\n' >"$tmp/prov/libweft-fi.so"
ok 'one that was built without verbs' provider_refused 77 'libibverbs-dev'
printf 'a wire by libibverbs.so.1\0' >>"$tmp/prov/libweft-fi.so"
ok 'one that has the wire' provider_refused 0 ''

done_testing
