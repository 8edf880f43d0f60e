#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# weft topo: this host, and hosts that aren't here (topo/host/tests/machine), by /sys and
# by hwloc; pictures; how it refuses.
# shellcheck source=tests/tap.sh
. "${WEFT_TOP_SRCDIR:-.}/tests/tap.sh" || exit 99

weft=$build/weft
for kind in server laptop container; do
	bash "$top/topo/host/tests/machine" $kind "$tmp/$kind" || bail "no $kind"
done
has() { # FILE TEXT...: every one of the texts
	local text

	for text in "${@:2}"; do
		grep -qF -- "$text" "$1" || {
			echo "without \"$text\":"
			cat "$1"
			return 1
		}
	done
}

"$weft" topo >"$tmp/here"
ok "this host: status 0" test $? -eq 0
ok "and its CPUs, as many as this process may use" \
	grep -q " CPUs\?, $(nproc) usable" "$tmp/here"
if command -v taskset >/dev/null; then
	one=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
	taskset -c "$one" "$weft" topo >"$tmp/one"
	ok "on one CPU: one is usable" grep -q ' CPUs\?, 1 usable' "$tmp/one"
else
	skip 1 "taskset is not installed"
fi

"$weft" topo --sys "$tmp/server/sys" >"$tmp/server.txt"
ok "a server by /sys: nodes, GPUs, NICs" has "$tmp/server.txt" \
	'node 1  package 1  64.0 GiB  8 cores, 1 x L3 of 105 MiB; CPUs 8-15,24-31' \
	'gpu7      0000:83:00.0' 'mlx5_3, ib3  400 Gb/s  up' 'display0  0000:01:00.0'
ok "each rank has the NIC at its GPU's switch, and cores of its node" has "$tmp/server.txt" \
	'rank 0   gpu0, nic1 (mlx5_0; switch), core: CPUs 0,16, progress: CPUs 7,23' \
	'rank 6   gpu6, nic7 (mlx5_6; switch), core: CPUs 10,26, progress: CPUs 13,29'
ok "but for the one whose NIC is down: another of its node" has "$tmp/server.txt" \
	'rank 7   gpu7, nic5 (mlx5_4; node)'
ok "which is named" has "$tmp/server.txt" 'the speed of nic8 (mlx5_7, ib7), which is down'
"$weft" topo --sys "$tmp/laptop/sys" >"$tmp/laptop.txt"
ok "a laptop by /sys" has "$tmp/laptop.txt" '4 cores, 1 x L3 of 12 MiB; CPUs 0-7' \
	'rank 0   gpu0, nic0 (wlan0; bridge), core: CPUs 0,4, progress: CPUs 3,7' \
	'the speed of nic0 (wlan0)'
"$weft" topo --sys "$tmp/container/sys" >"$tmp/container.txt"
ok "a container: what is missing is named" test $? -eq 0
ok "each piece of it" has "$tmp/container.txt" 'NUMA nodes: not known' \
	'which CPUs are one core' "PCI devices: $tmp/container/sys/bus/pci/devices" \
	'rank 0   no NIC, core: not known' 'virtual0  -              eth0  10 Gb/s  up'

# structure: what hwloc and /sys both know, without what only /sys does.
structure() {
	"$weft" topo "$1" "$2" --json |
		grep -vE '"(source|state|bits_per_s|model)"|the speed of|"nic": ' | sed 's/,$//'
}
if grep -q '^#define HAVE_HWLOC 1' "$build/config.h"; then
	for kind in server laptop; do
		structure --sys "$tmp/$kind/sys" >"$tmp/by-sys"
		structure --xml "$tmp/$kind/xml" >"$tmp/by-hwloc"
		ok "a $kind is the same by hwloc" diff -u "$tmp/by-sys" "$tmp/by-hwloc"
	done
	"$weft" topo --xml "$tmp/server/xml" >"$tmp/xml.txt"
	ok "of a host that isn't here no speed is taken from this one" \
		has "$tmp/xml.txt" 'the speed of nic0 (eno1)'
	echo '<html/>' >"$tmp/bad.xml"
	ok "what is no XML of hwloc: status 1, and the file" bash -c \
		"err=\$('$weft' topo --xml '$tmp/bad.xml' 2>&1); [ \$? = 1 ] &&
		[[ \$err == *'$tmp/bad.xml'* ]]"
else
	err=$("$weft" topo --xml "$tmp/server/xml" 2>&1)
	ok "without hwloc no XML: status 1" test $? -eq 1
	ok "and it says so" test "${err/without hwloc/}" != "$err"
	ok "of this host, too" has "$tmp/here" 'this build is without it'
	skip 1 "hwloc is not used"
fi
if command -v python3 >/dev/null; then
	"$weft" topo --sys "$tmp/server/sys" --ranks 3 --json >"$tmp/json"
	ok "JSON that others read" python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
assert d["schema"] == 1 and not d["this_host"]
assert len(d["gpus"]) == 8 and len(d["nics"]) == 9 and len(d["ranks"]) == 3
assert d["gpu_nic_distances"][2][3] == "switch"' "$tmp/json"
else
	skip 1 "python3 is not installed"
fi
"$weft" topo --sys "$tmp/server/sys" --ranks 20 >"$tmp/many"
ok "more ranks than cores share those, and have no progress core" has "$tmp/many" \
	'rank 19' 'progress: none is left'

# No two texts of a picture in one place: each begins somewhere else, all within the page.
apart() {
	awk -F'"' '/^<svg x=/ { dx = $2; dy = $4 } /^<\/svg>/ { dx = dy = 0 }
		/^<svg xmlns/ { width = $4; height = $6 }
		/^<text/ { x = dx + $2; y = dy + $4
			if (x < 0 || y < 0 || x > width || y > height) { print "outside: " $0; bad = 1 }
			if (seen[x "," y]++) { print "twice: " $0; bad = 1 } }
		END { exit bad || !width }' "$1"
}
for kind in server laptop container; do
	"$weft" topo --sys "$tmp/$kind/sys" --svg "$tmp/$kind.svg" >/dev/null
	ok "a picture of a $kind" grep -q 'fill="#ffffff"' "$tmp/$kind.svg"
	ok "with all texts apart" apart "$tmp/$kind.svg"
	ok "that needs nothing from elsewhere" is_empty \
		"$(grep -oE '(href|url|@import|src)[=(].*' "$tmp/$kind.svg")"
	if command -v xmllint >/dev/null; then
		ok "well-formed" xmllint --noout "$tmp/$kind.svg"
	else
		skip 1 "xmllint is not installed"
	fi
done
ok "what is not known is not drawn as none" grep -q \
	'packages not known, NUMA nodes not known, cores not known, 4 hardware' \
	"$tmp/container.svg"
ok "all devices of the server are drawn" test \
	"$(grep -cE '>(gpu[0-7]|nic[0-8]|display0)</text>' "$tmp/server.svg")" = 18

# shellcheck disable=SC2317 # called by ok
says() { # STATUS TEXT ARGUMENTS...: on stderr, in one line
	local want=$1 text=$2 err status

	shift 2
	err=$("$weft" topo "$@" 2>&1 >/dev/null)
	status=$?
	[ "$status" -eq "$want" ] && [[ $err == *"$text"* ]] && [ "${err/$'\n'/}" = "$err" ]
}
ok "no /sys there: status 1" says 1 'is that a copy of /sys?' --sys "$tmp"
ok "a picture that cannot be written: status 1" says 1 '/no/such/file' \
	--sys "$tmp/laptop/sys" --svg /no/such/file
ok "no ranks: status 2" says 2 '--ranks must be 1 to 4096, not "0"' --ranks 0
ok "two hosts: status 2" says 2 'not together: "--xml --sys"' --xml a --sys b
ok "an argument too many: status 2" says 2 'one too many: "x"' x

done_testing
