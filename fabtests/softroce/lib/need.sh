# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# What the machine must have for virtual machines. Nothing is installed here: what is
# missing is named, and the whole is left out.

# The status that says so.
readonly cannot=77

# tool | package as Debian and Ubuntu name it | why
softroce_tools='qemu-system-x86_64|qemu-system-x86|the virtual machine
busybox|busybox-static|the first programs in it
cpio|cpio|packs its initial memory disk
gzip|gzip|packs its initial memory disk
depmod|kmod|finds the order of the modules
ip|iproute2|addresses in the guest
rdma|iproute2|devices in the guest
tc|iproute2|loss in the guest
setpriv|util-linux|ends the machine with the script'

# The provider library of rdma-core for rxe devices.
has_rxe_library()
{
	local place

	for place in /usr/lib/*/libibverbs /usr/lib64/libibverbs /usr/lib/libibverbs; do
		compgen -G "$place/librxe-rdmav*.so" >/dev/null && return
	done
	return 1
}

# need_all: ends with the status 77 and the reason when something isn't there.
need_all()
{
	local tool package why lacking=()

	[ "$(uname -sm)" = 'Linux x86_64' ] ||
		die $cannot "the virtual machine is for Linux on x86_64, this is $(uname -sm)"
	while IFS='|' read -r tool package why; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$tool" >/dev/null ||
			lacking+=("$tool ($package: $why)")
	done <<<"$softroce_tools"
	has_rxe_library ||
		lacking+=('librxe-rdmav*.so (ibverbs-providers: the devices for programs)')
	[ ${#lacking[@]} = 0 ] ||
		die $cannot "not installed, with the packages of Debian and Ubuntu in brackets:" \
			"$(printf '%s; ' "${lacking[@]}")install them with apt-get"
	busybox_static || die $cannot "$(command -v busybox) is not linked statically, and the" \
		"guest has no library when it starts (Debian and Ubuntu: busybox-static)"
	memory_need $((hosts * memory))
}

busybox_static()
{
	! ldd "$(command -v busybox)" 2>/dev/null | grep -q ld-linux
}

# memory_need MIB
memory_need()
{
	local free

	free=$(awk '$1 == "MemAvailable:" { print int($2 / 1024) }' /proc/meminfo)
	[ "${free:-0}" -ge "$1" ] ||
		die $cannot "the guests want $1 MiB of memory and ${free:-0} are available"
}
