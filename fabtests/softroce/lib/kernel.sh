# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The guest's kernel: the distribution's image package, fetched and unpacked, never
# installed; and the initial memory disk. Variables of the script that sources this:
# scratch, softroce.
# shellcheck disable=SC2154

# Seconds that the package servers have for each step.
readonly fetch_deadline=300

# Modules that the guest loads; what they need is loaded before them. rxe adds no device
# without a crc32 that the kernel can look up by name.
readonly guest_modules=(virtio_pci 9pnet_virtio 9p overlay crc32_generic virtio_net veth
	sch_netem rdma_rxe ib_uverbs rdma_ucm)

# kernel_obtain CACHE: sets kernel_dir, a folder with vmlinuz, load.order and the modules
# that it names.
kernel_obtain()
{
	local cache=$1 dir work package

	if [ -n "${SOFTROCE_KERNEL:-}" ]; then
		kernel_dir=$scratch/kernel
		mkdir -p "$kernel_dir" && kernel_take "$SOFTROCE_KERNEL" "$kernel_dir" && return
		say "SOFTROCE_KERNEL=$SOFTROCE_KERNEL is not an unpacked image package" >&2
		return 1
	fi
	for dir in "$cache"/linux-image-*; do
		[ -e "$dir/complete" ] && [ -O "$dir" ] && kernel_dir=$dir && return
	done
	mkdir -p "$cache" && work=$(mktemp -d "$cache/work.XXXXXX") || return 1
	if package=$(kernel_fetch "$work") && kernel_unpack "$work" &&
		mkdir -p "$work/kernel" && kernel_take "$work/root" "$work/kernel"; then
		: >"$work/kernel/complete"
		kernel_dir=$cache/$package
		# Somebody else may have been faster; one is as good as the other.
		mv -T "$work/kernel" "$kernel_dir" 2>/dev/null || [ -e "$kernel_dir/complete" ]
	fi
	rm -rf "$work"
	[ -n "${kernel_dir:-}" ] && [ -e "$kernel_dir/complete" ]
}

# apt_ask COMMAND...: apt's tools without its own user, who may not enter our folder, and
# from the second time on with lists of our own in the array apt_lists.
apt_ask()
{
	local tool=$1

	shift
	LC_ALL=C timeout -k 5 $fetch_deadline "$tool" -o APT::Sandbox::User=root \
		"${apt_lists[@]}" "$@"
}

# kernel_fetch DIR: the package's file in DIR; prints the package's name.
kernel_fetch()
{
	local dir=$1 package try apt_lists=()

	if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
		say 'only packages of Debian and its kin are known here; SOFTROCE_KERNEL=DIR' \
			'names an unpacked kernel (boot/vmlinuz-V, lib/modules/V)' >&2
		return 1
	fi
	say 'softroce: fetching a kernel (70 MB, once)' >&2
	for try in system own; do
		package=$(apt_ask apt-cache depends linux-image-amd64 2>/dev/null |
			sed -n 's/^ *Depends: \(linux-image-[^ ]*\)$/\1/p' | head -n 1)
		if [ -n "$package" ] &&
			(cd "$dir" && apt_ask apt-get -q download "$package") >"$dir/log" 2>&1; then
			say "$package"
			return 0
		fi
		[ $try = system ] || break
		# The system's lists are missing or old: lists of our own, from its sources.
		mkdir -p "$dir/lists/partial" "$dir/apt/archives/partial"
		apt_lists=(-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/apt")
		apt_ask apt-get -q update >"$dir/update.log" 2>&1
	done
	cat "$dir/update.log" "$dir/log" >&2 2>/dev/null
	say "no package ${package:-linux-image-amd64} to be had: a mirror is needed once" >&2
	return 1
}

# kernel_unpack DIR: of the package in DIR what a guest may want, to DIR/root.
kernel_unpack()
{
	local dir=$1

	mkdir -p "$dir/root"
	dpkg-deb --fsys-tarfile "$dir"/linux-image-*.deb | tar -x -C "$dir/root" \
		--wildcards './boot/vmlinuz-*' './lib/modules/*/modules.*' \
		'./lib/modules/*/kernel/drivers/infiniband/*' \
		'./lib/modules/*/kernel/drivers/net/*' \
		'./lib/modules/*/kernel/drivers/virtio/*' './lib/modules/*/kernel/net/*' \
		'./lib/modules/*/kernel/fs/*' './lib/modules/*/kernel/crypto/*' \
		'./lib/modules/*/kernel/lib/*' && return
	say 'the kernel package could not be unpacked' >&2
	return 1
}

# kernel_take ROOT DIR: image, modules and their order of the kernel below ROOT.
kernel_take()
{
	local root=$1 dir=$2 image version module path line

	image=$(compgen -G "$root/boot/vmlinuz-*" | head -n 1)
	version=${image##*/vmlinuz-}
	if [ -z "$image" ] || ! [ -d "$root/lib/modules/$version" ]; then
		say "no boot/vmlinuz-VERSION and lib/modules/VERSION in $root" >&2
		return 1
	fi
	# depmod writes: into a copy, when the tree is somebody's.
	[ -w "$root/lib/modules/$version" ] || {
		cp -r "$root/lib/modules" "$dir/tree" && root=$dir/tree.root &&
			mkdir -p "$root/lib" && mv "$dir/tree" "$root/lib/modules"
	} || return
	PATH=$PATH:/usr/sbin:/sbin depmod -b "$root" "$version" || return
	mkdir -p "$dir/modules" && cp "$image" "$dir/vmlinuz" && : >"$dir/load.order" || return
	for module in "${guest_modules[@]}"; do
		PATH=$PATH:/usr/sbin:/sbin modprobe -d "$root" -S "$version" \
			--show-depends "$module" >"$dir/depends" 2>&1 || {
			say "the kernel $version has no module $module:" >&2
			cat "$dir/depends" >&2
			return 1
		}
		while read -r line path _; do
			[ "$line" = insmod ] || continue
			[ -e "$dir/modules/${path##*/}" ] && continue
			cp "$path" "$dir/modules/" && say "${path##*/}" >>"$dir/load.order"
		done <"$dir/depends"
	done
	rm -rf "$dir/depends" "$dir/tree.root"
}

# initrd_make FILE: the initial memory disk, of this tree's guest/init.
initrd_make()
{
	local root=$scratch/disk

	mkdir -p "$root"/{bin,modules,proc,sys,dev,lower,over,top}
	cp "$(command -v busybox)" "$root/bin/busybox" &&
		cp "$softroce/guest/init" "$root/init" && chmod 755 "$root/init" &&
		cp "$kernel_dir"/modules/* "$root/modules/" &&
		cp "$kernel_dir/load.order" "$root/modules/" &&
		(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$1" && rm -rf "$root"
}
