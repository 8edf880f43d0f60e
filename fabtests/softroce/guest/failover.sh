# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# A checked stream between the guests (fabtests/own/stream) while a device of either loses
# its interface and gets it back. Variables of the script that sources this: timeout, log.
# shellcheck disable=SC2154

# An outage is at least so long, in tenths of a second, and so many of the stream's stamps.
readonly outage_tenths=10 outage_stamps=2
# Between two of them, in stamps; and none begins in the last part of a stream, in percent.
readonly outage_pause=3 outage_last=70
# How often a stream is run at most, and what a longer one is to take, in tenths of a second.
readonly stream_tries=3 stream_tenths=400

# What the client has said since the last time: part, bytes and stamps of this part.
stream_follow()
{
	local line words

	while IFS= read -r line <&7; do
		case $line in
		'# stamp '*)
			read -ra words <<<"$line"
			stream_bytes=${words[3]}
			stream_stamps=$((stream_stamps + 1))
			;;
		'ok '* | 'not ok '*)
			stream_part=$((stream_part + 1))
			stream_bytes=0 stream_stamps=0
			;;
		esac
	done
}

# stream_await STAMPS TENTHS: until there are so many of this part, at that time; false when
# it ended before.
stream_await()
{
	local part=$stream_part

	while :; do
		stream_follow
		[ "$stream_part" = "$part" ] || return
		[ "$stream_stamps" -lt "$1" ] || [ "$(clock)" -lt "$2" ] || return 0
		kill -0 "$client" 2>/dev/null || return
		sleep 0.1
	done
}

# rail_set HOST up|down: and it is. In guest b rail_follow sees to that: quicker than a
# command of its own for each.
rail_set()
{
	local until=$((SECONDS + 120))

	if [ "$1" = a ]; then
		ip link set rail1 "$2"
		return
	fi
	say "$2" >"$job/rail"
	while [ "$(<"$job/rail.is")" != "$2" ]; do
		[ $SECONDS -lt $until ] || return
		sleep 0.1
	done
}

# outage HOST: whether it was one.
outage()
{
	local from status

	rail_set "$1" down || return
	stream_follow
	from=$stream_stamps
	stream_await $((from + outage_stamps)) $(($(clock) + outage_tenths))
	status=$?
	say "# part $stream_part: rxe1 of $1 went, stamps $from to $stream_stamps" >>outages
	rail_set "$1" up || return
	return $status
}

# As many as there is time for, in turn; counts those that the stream went through.
outages()
{
	local host=b

	while kill -0 "$client" 2>/dev/null; do
		if ! stream_await $((stream_stamps + outage_pause)) 0 ||
			[ "$stream_bytes" -gt $((stream_size * outage_last / 100)) ]; then
			sleep 0.1
			continue
		fi
		outage $host && outage_count[$host]=$((outage_count[$host] + 1))
		[ $host = a ] && host=b || host=a
	done
}

# failover_count WHAT: of all links of both sides.
failover_count()
{
	sed -n "s/.*<info> link to .* packets=.* $1=\([0-9]*\).*/\1/p" client server |
		awk '{ n += $1 } END { print n + 0 }'
}

# failover_wants: false, when one of them isn't there.
failover_wants()
{
	local what n bad=0

	for what in a b; do
		say "# outages of $what with data flowing: ${outage_count[$what]}" >>outages
		[ "${outage_count[$what]}" -gt 0 ] || bad=1
	done
	for what in retired again; do
		n=$(failover_count $what)
		say "# $what: $n" >>outages
		[ "$n" -gt 0 ] || bad=1
	done
	for what in client server; do
		# Of its own device, by its event.
		for n in down up; do
			grep -q "rail rxe1 is $n\$" $what && continue
			say "# $what never heard that its rxe1 is $n" >>outages
			bad=1
		done
	done
	return $bad
}

# failover_once MIB SECONDS: 99 when the stream was good, but not all that is asked for happened in it.
failover_once()
{
	local program=$WEFT_TOP_BUILDDIR/fabtests/own/stream server client status=0 words
	local missed=0 limit=$2
	local stream_size=$(($1 << 20)) stream_part=1 stream_bytes=0 stream_stamps=0
	local -A outage_count=([a]=0 [b]=0)

	words="env FI_LOG_LEVEL=info FI_LOG_PROV=weft FI_LOG_SUBSYS=ep_ctrl FI_WEFT_LANES=8"
	words+=" WEFT_TEST_MEET=$(address ctl b):7001"
	# After what watches it: programs that poll leave nothing to others.
	program="nice -n 15 $program --size $1M --seed $RANDOM$RANDOM"
	: >outages
	: >"$job/rail"
	: >"$job/rail.is"
	on b softroce_do rail_follow "$job/rail" >/dev/null 2>&1 &
	on b "$words WEFT_TEST_SIDE=1 WEFT_TEST_SOURCE=$(address 0 b) timeout -k 2 $limit $program" \
		>server 2>&1 &
	server=$!
	# shellcheck disable=SC2086 # words
	$words WEFT_TEST_SIDE=0 WEFT_TEST_SOURCE="$(address 0 a)" timeout -k 2 $limit $program \
		>client 2>&1 &
	client=$!
	exec 7<client
	outages
	wait $client || status=$?
	wait $server || status=$((status ? status : $?))
	exec 7<&-
	rm -f "$job/rail" "$job/rail.is"
	failover_wants || missed=1
	cat outages
	[ $status != 0 ] || [ $missed = 0 ] || status=99
	return $status
}

# failover_run SIZE: where a quick machine ends the stream before a device was down for long
# enough and back, a longer one follows, by how quick it was; a stream that fails is never run
# again.
failover_run()
{
	local mib status begun more try

	[[ ${1-} =~ ^([1-9][0-9]*)M$ ]] || return 2
	mib=${BASH_REMATCH[1]}
	for ((try = 1; try <= stream_tries; try++)); do
		begun=$(clock)
		failover_once "$mib" $((2 * timeout * (try > 1 ? 2 : 1)))
		status=$?
		[ $status = 99 ] || return $status
		more=$((stream_tenths / ($(clock) - begun + 1)))
		mib=$((mib * (more < 2 ? 2 : more > 16 ? 16 : more)))
	done
	return $status
}
