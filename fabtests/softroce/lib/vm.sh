# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The virtual machines: started, watched, ended. Variables of the script that sources
# this: softroce, scratch, hosts, memory, processors, deadline, kernel_dir, show_console.
# shellcheck disable=SC2154

vm_pids=()

# reaper_start: a process that outlives this one, and then ends the machines and removes
# the scratch folder. It knows by the pipe whose other end only this script holds, so that
# it works however the script ends. $scratch/pids has the machines.
reaper_start()
{
	: >"$scratch/pids"
	# shellcheck disable=SC2016 # for the inner shell
	exec {life}> >(exec setsid bash -c 'trap "" INT TERM HUP PIPE
		read -r _
		while read -r pid; do
			[ "$(readlink "/proc/$pid/cwd")" = "$1" ] && kill -KILL "$pid"
		done <"$1/pids"
		sleep 0.2
		rm -rf "$1"' reaper "$scratch" >/dev/null 2>&1)
	reaper=$!
}

# Closes the pipe and waits until the reaper has done its work.
reaper_end()
{
	local i

	exec {life}>&-
	for ((i = 0; i < 1200; i++)); do
		kill -0 "$reaper" 2>/dev/null || return 0
		sleep 0.05
	done
}

# net_options NUMBER OTHER RAIL...: cables to the other machine, one for each rail, as
# sockets in the scratch folder. Into the array options.
net_options()
{
	local me=$1 other=$2 rail
	shift 2

	for rail in "$@"; do
		options+=(
			-netdev "dgram,id=n$rail,local.type=unix,local.path=net$rail.$me,remote.type=unix,remote.path=net$rail.$other"
			-device "virtio-net-pci,netdev=n$rail,mac=52:54:00:99:0$rail:0$me,romfile="
		)
	done
}

# vm_start NAME NUMBER: machine a is 1, b is 2.
vm_start()
{
	local name=$1 number=$2 options words accel=tcg,thread=multi

	# Instructions are counted on one thread only.
	[ "$counted" = no ] || accel=tcg,thread=single
	words="console=ttyS0 loglevel=4 panic=-1 no_timer_check softroce.name=$name"
	words+=" softroce.main=$softroce/guest/main softroce.deadline=$deadline"
	options=(-name "softroce-$name" -accel "$accel" -cpu max -smp "$processors"
		-m "$memory" -nodefaults -no-user-config -display none -no-reboot
		-serial "file:$name.console" -kernel "$kernel_dir/vmlinuz" -initrd initrd
		-append "$words"
		-fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap
		-device virtio-9p-pci,fsdev=root,mount_tag=root
		-fsdev local,id=job,path=job,security_model=none
		-device virtio-9p-pci,fsdev=job,mount_tag=job)
	[ "$counted" = no ] || options+=(-icount 'shift=0,sleep=on,align=off')
	[ "$hosts" = 1 ] || net_options "$number" $((3 - number)) 0 1 9
	(
		cd "$scratch" && exec {life}>&- && exec setpriv --pdeathsig KILL \
			qemu-system-x86_64 "${options[@]}" \
			>"$name.qemu" 2>&1 </dev/null
	) &
	vm_pids+=($!)
	say $! >>"$scratch/pids"
}

# vm_end: all of them, at once; what they share with the host is read only or scratch.
vm_end()
{
	local pid

	for pid in "${vm_pids[@]}"; do
		kill -KILL "$pid" 2>/dev/null
	done
	[ ${#vm_pids[@]} = 0 ] || wait "${vm_pids[@]}" 2>/dev/null
	vm_pids=()
}

# copy_new FILE: what came since the last time, to standard output. seen[FILE] is where.
declare -A seen=()
copy_new()
{
	local file=$1 size

	size=$(stat -c %s "$file" 2>/dev/null) || return 0
	[ "$size" -gt "${seen[$file]:-0}" ] || return 0
	tail -c +$((${seen[$file]:-0} + 1)) "$file" | head -c $((size - ${seen[$file]:-0}))
	seen[$file]=$size
}

copy_output()
{
	copy_new "$scratch/job/out"
	copy_new "$scratch/job/err" >&2
	[ "$show_console" = no ] || copy_new "$scratch/a.console" >&2
}

# vm_busy PID: seconds of a processor that a machine has had.
vm_busy()
{
	local stat

	stat=$(<"/proc/$1/stat") || return
	read -ra stat <<<"${stat##*) }"
	say $(((stat[11] + stat[12]) / $(getconf CLK_TCK)))
}

# boot_is_over SECONDS: whether guests that are not ready after that time never will be: where
# others have the processors they need longer, and no more of them. Says what they had in why.
boot_is_over()
{
	local pid busy words=''

	[ "$1" -ge "$boot_deadline" ] || return
	for pid in "${vm_pids[@]}"; do
		busy=$(vm_busy "$pid") || continue
		[ "$busy" -ge "$boot_busy" ] || return
		words+=", $busy s of a processor"
	done
	why="the guests were not ready after $1 s$words"
}

# vm_watch: passes on what the command says until guest a is off. Returns 1 when a
# deadline is over or a guest ended too early; the reason is then in why.
vm_watch()
{
	local begun=$SECONDS

	while kill -0 "${vm_pids[0]}" 2>/dev/null; do
		sleep 0.2
		copy_output
		if [ "$hosts" = 2 ] && ! kill -0 "${vm_pids[1]}" 2>/dev/null &&
			[ ! -e "$scratch/job/status" ]; then
			why='guest b ended before the command did'
			return 1
		fi
		if ! [ -e "$scratch/job/ready" ] && boot_is_over $((SECONDS - begun)); then
			return 1
		fi
		if [ $((SECONDS - begun)) -ge "$deadline" ]; then
			why="the command did not end within $deadline s"
			[ -e "$scratch/job/ready" ] ||
				why="the guests were not ready within $deadline s"
			return 1
		fi
		if ! [ -e "/proc/$PPID" ]; then
			why='the process that started this is gone'
			return 1
		fi
	done
	copy_output
	[ -s "$scratch/job/status" ] && return
	why='the guest ended without a status'
	return 1
}

# vm_trouble: what the guests said last, when something is wrong with them.
vm_trouble()
{
	local name

	for name in a b; do
		[ -e "$scratch/$name.console" ] || continue
		say "softroce: the last lines of guest $name's console:" >&2
		cat "$scratch/$name.qemu" 2>/dev/null | sed 's/^/  | /' >&2
		tr -d '\r' <"$scratch/$name.console" | tail -n 20 | sed 's/^/  | /' >&2
	done
}

# vm_run: machines, command, end. Status of the command, or 1 with the reason.
vm_run()
{
	local status lost

	initrd_make "$scratch/initrd" || die 1 "the initial memory disk could not be made"
	vm_start a 1
	[ "$hosts" = 1 ] || vm_start b 2
	vm_watch || {
		vm_end
		copy_output
		[ ! -s "$scratch/job/trouble" ] || why+=": $(tail -n 3 "$scratch/job/trouble")"
		vm_trouble
		die 1 "$why"
	}
	vm_end
	status=$(<"$scratch/job/status")
	if [ "$loss" != 0 ]; then
		lost=$(cat "$scratch/job/lost" 2>/dev/null)
		[ "${lost:-0}" -gt 0 ] ||
			die 1 "no packet was lost, so --loss $loss tested nothing (status $status)"
		say "softroce: $lost packets were lost on purpose" >&2
	fi
	return "$status"
}

# job_write COMMAND...: the folder that the guests share with the host.
job_write()
{
	local name

	mkdir "$scratch/job" || die 1 "no folder $scratch/job"
	printf '%s=%q\n' hosts "$hosts" nics "$nics" loss "$loss" mtu "$mtu" \
		boot_deadline "$deadline" >"$scratch/job/settings"
	{
		compgen -e | while read -r name; do
			case $name in
			PATH | HOME | LANG | FABTESTS_BIN | FI_* | WEFT_* | UCX_* | OMPI_* | CLIENT_* | SOFTROCE_*)
				printf 'export %s=%q\n' "$name" "${!name}"
				;;
			esac
		done
		# Before the programs of the same name that the host may have.
		printf 'PATH=%q:$PATH\n' "$softroce/guest/bin"
		printf 'export SOFTROCE_HOSTS=%s\ncd %q || exit\nexec' "$hosts" "$PWD"
		printf ' %q' "$@"
		printf '\n'
	} >"$scratch/job/command"
}
