#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft doctor: each misconfiguration that a host can have is seen in copies of /proc and /sys,
# and its first line names what was found and what mends it; ranks put their findings together.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../../tests/tap.sh" || exit 99

weft=$build/weft
unset FI_PROVIDER
host=$tmp/host

# put FILE TEXT: a file of the copy.
put() {
	mkdir -p "$host/$(dirname "$1")"
	printf '%s\n' "$2" >"$host/$1"
}

# limits LOCKED FILES: /proc/self/limits, as the kernel lays it out.
limits() {
	put proc/self/limits "$(printf '%-26s%-21s%-21s%s\n' Limit 'Soft Limit' 'Hard Limit' Units \
		'Max open files' "$2" "$2" files 'Max locked memory' "$1" "$1" bytes)"
}

# A host on which nothing is wrong: two NUMA nodes, a NIC with RDMA.
good() {
	local cpu

	rm -rf "$host"
	limits unlimited 65536
	put proc/sys/kernel/yama/ptrace_scope 0
	put proc/sys/kernel/numa_balancing 0
	put proc/sys/net/core/rmem_max 16777216
	put proc/sys/net/core/wmem_max 16777216
	put proc/cmdline "root=/dev/vda iommu=pt"
	put sys/kernel/mm/transparent_hugepage/enabled "always [madvise] never"
	put sys/devices/system/clocksource/clocksource0/current_clocksource tsc
	put sys/devices/system/cpu/cpu0/cpufreq/scaling_governor performance
	put sys/devices/system/cpu/online 0-1
	put sys/devices/system/node/online 0-1
	for cpu in 0 1; do
		put sys/devices/system/cpu/cpu$cpu/topology/core_id "$cpu"
		put sys/devices/system/cpu/cpu$cpu/topology/physical_package_id 0
		put sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list "$cpu"
		put sys/devices/system/node/node$cpu/cpulist "$cpu"
		mkdir -p "$host/sys/devices/system/cpu/cpu$cpu/node$cpu"
	done
	put sys/fs/cgroup/cpu.max "max 100000"
	put sys/class/net/eth0/operstate up
	put sys/class/net/eth0/mtu 9000
	put sys/class/net/eth0/speed 100000
	put sys/class/net/eth0/ecn/roce_np/enable/3 1
	put sys/class/infiniband/mlx5_0/ports/1/state "4: ACTIVE"
	put sys/class/infiniband/mlx5_0/ports/1/link_layer Ethernet
	put sys/class/infiniband/mlx5_0/ports/1/gids/0 fe80:0000:0000:0000:0000:0000:0000:0000
	put sys/class/infiniband/mlx5_0/ports/1/gids/1 0000:0000:0000:0000:0000:ffff:0a00:0001
	put dev/infiniband/uverbs0 ""
	mkdir -p "$host/sys/class/iommu/dmar0"
}

doctor() {
	env -u FI_WEFT_CMA "$weft" doctor --root "$host" >"$tmp/out" 2>"$tmp/err"
	echo $? >"$tmp/status"
}

# says LEVEL NAME FOUND CURE STATUS: the only line that is not PASS, its cure below it.
says() {
	local line

	doctor
	line=$(grep -nE '^(WARN|FAIL)' "$tmp/out")
	cat "$tmp/out"
	[ "$(wc -l <<<"$line")" = 1 ] && [[ $line == *":$1  $2 "*"$3"* ]] || return 1
	sed -n "$((${line%%:*} + 1))p" "$tmp/out" | grep -qF -e "$4" || return 1
	[ "$(cat "$tmp/status")" = "$5" ]
}

# seeded WHAT LEVEL NAME FOUND CURE: WHAT is how it was made wrong.
seeded() {
	local status=0

	[ "$2" = WARN ] || status=1
	ok "$1: $2, and what mends it" says "$2" "$3" "$4" "$5" $status
}

good
doctor
ok "a good host has nothing but PASS" is_empty "$(grep -vE '^PASS  |^[0-9]+ pass, 0 warn, 0 fail$' "$tmp/out")"
ok "and status 0" test "$(cat "$tmp/status")" = 0

limits 65536 65536
seeded "little memory may be locked" FAIL "locked memory" "64 KiB" "ulimit -l unlimited"
good
limits 1073741824 65536
seeded "more of it may" WARN "locked memory" "1048576 KiB" "memlock"
good
limits unlimited 1024
seeded "few files may be open" WARN "open files" "1024 at once" "ulimit -n 65536"
good
put proc/sys/kernel/yama/ptrace_scope 1
seeded "no attach to siblings" WARN "memory attach" "ptrace_scope is 1" \
	"sysctl -w kernel.yama.ptrace_scope=0"
good
put proc/sys/kernel/numa_balancing 1
seeded "NUMA balancing" WARN "NUMA balancing" "on:" "sysctl -w kernel.numa_balancing=0"
good
put proc/sys/net/core/rmem_max 212992
seeded "small receive buffers" WARN "socket buffers" "rmem_max is 212992" \
	"sysctl -w net.core.rmem_max="
good
put proc/sys/net/core/wmem_max 212992
seeded "small send buffers" WARN "socket buffers" "wmem_max is 212992" \
	"sysctl -w net.core.wmem_max="
good
put sys/kernel/mm/transparent_hugepage/enabled "always madvise [never]"
seeded "no huge pages" WARN "huge pages" "off" "transparent_hugepage/enabled"
good
put sys/devices/system/clocksource/clocksource0/current_clocksource hpet
seeded "a slow clock" WARN "clock" "hpet" "tsc"
good
put sys/devices/system/cpu/cpu0/cpufreq/scaling_governor powersave
seeded "slow cores" WARN "CPU speed" "powersave" "cpupower frequency-set -g performance"
good
put sys/fs/cgroup/cpu.max "150000 100000"
seeded "a container's quota" WARN "CPU quota" "1.50 CPUs" "cpuset-cpus"
good
put sys/class/net/eth0/mtu 1500
seeded "small frames on a fast network" WARN "MTU" "eth0: 1500 bytes at 100000 Mb/s" \
	"ip link set eth0 mtu 9000"
good
put sys/class/net/eth0/ecn/roce_np/enable/3 0
seeded "no marks of congestion" WARN "ECN" "eth0: roce_np is off for priority 3" \
	"echo 1 > /sys/class/net/eth0/ecn/roce_np/enable/3"
good
put sys/class/infiniband/mlx5_0/ports/1/state "1: DOWN"
seeded "a port that is down" FAIL "RDMA port" "mlx5_0: 1: DOWN" "rdma link show mlx5_0"
good
put sys/class/infiniband/mlx5_0/ports/1/state "2: INIT"
put sys/class/infiniband/mlx5_0/ports/1/link_layer InfiniBand
seeded "no subnet manager" FAIL "RDMA port" "mlx5_0: 2: INIT" "opensm"
good
rm "$host/sys/class/infiniband/mlx5_0/ports/1/gids/1"
seeded "a port without an address" FAIL "RDMA port" "has no GID" "ip addr add"
good
rm -r "${host:?}/dev"
seeded "no files of the devices" FAIL "RDMA access" "/dev/infiniband/uverbs*" "modprobe ib_uverbs"
if [ "$(id -u)" = 0 ]; then
	skip 1 "root may use every device"
else
	good
	chmod 000 "$host/dev/infiniband/uverbs0"
	seeded "devices of somebody else" FAIL "RDMA access" "Permission denied" "chmod 666"
fi
good
put proc/cmdline "root=/dev/vda"
seeded "an IOMMU that translates" WARN "IOMMU" "on, and translates" "iommu=pt"

# Without a device that wants them they are no fault.
rm -r "${host:?}/sys/class/infiniband" "${host:?}/dev"
limits 65536 65536
doctor
ok "neither is one where there is no RDMA device" grep -q ' 0 warn, 0 fail' "$tmp/out"

rm -rf "$host"
mkdir "$host"
doctor
ok "an empty copy is judged without a crash" grep -qE '^[0-9]+ pass, ' "$tmp/out"

# This host: what ranks find is put together.
ok "this host is gone through" grep -qE '^PASS  memory attach|^WARN  memory attach' \
	<("$weft" doctor 2>&1)
ok "a wrong variable is named, with what to do" grep -qF 'unset WEFT_ALGORITHM' \
	<(WEFT_ALGORITHM=ring "$weft" doctor 2>&1)
attach_insisted() {
	put proc/sys/kernel/yama/ptrace_scope 2
	! FI_WEFT_CMA=1 "$weft" doctor --root "$host" >"$tmp/out" &&
		grep -q '^FAIL  memory attach .*ptrace_scope is 2' "$tmp/out"
}
ok "what a variable insists on and is not there is FAIL" attach_insisted

# Where the provider is, and not where it would be if it had been installed.
advises() {
	FI_PROVIDER_PATH=$tmp "$weft" doctor >"$tmp/out" 2>&1
	cat "$tmp/out"
	grep -A1 '^WARN  provider  *weft is not among' "$tmp/out" | grep -qxE " *-> FI_PROVIDER_PATH=$(readlink -f "$build")/prov"
}
if [ -e "$build/prov/libweft-fi.so" ] && [ "$(readlink -f "$weft")" = "$(readlink -f "$build")/weft" ]; then
	ok "a provider that is not found: the folder that it is in" advises
else
	skip 1 "the provider is not beside the command"
fi

ranks() {
	FI_PROVIDER=tcp timeout 120 "$weft" run -n 2 --no-prefix "$weft" doctor --budget 1 \
		>"$tmp/out" 2>"$tmp/err"
	local status=$?

	cat "$tmp/out" "$tmp/err"
	[ "$status" = 0 ] || grep -q '^FAIL' "$tmp/out"
}
ok "two ranks" ranks
ok "one report" test "$(grep -cE '^[0-9]+ pass, [0-9]+ warn, [0-9]+ fail$' "$tmp/out")" = 1
for line in "ranks  .* 2 on 1 host, over tcp" "clocks  .* apart" "messages  .* GB/s between ranks" \
	"allreduce  .* bytes: .* by " "choice  .*allreduce of 8 bytes"; do
	ok "it has ${line%% *}" grep -qE "^(PASS|WARN)  $line" "$tmp/out"
done
ok "what both say is there once" test "$(grep -c ' open files ' "$tmp/out")" = 1

ok "wrong usage" test "$("$weft" doctor --root "$tmp/none" 2>&1)" = \
	"weft doctor: --root must be a folder that is there, not \"$tmp/none\"; see weft doctor --help"

done_testing
