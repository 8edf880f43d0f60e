# SPDX-License-Identifier: BSD-2-Clause
# Reads layers.txt, then sources; prints one line for each include that the table does
# not allow. Sources are named relative to the top of the tree.

FNR == 1 { table = (NR == 1) }

table {
	sub(/#.*/, "")
	if (split($0, part, ":") < 2)
		next
	folder = part[1]
	gsub(/[ \t]/, "", folder)
	may[folder] = may[folder] " " part[2]
	next
}

/^[ \t]*#[ \t]*include[ \t]*["<]/ {
	what = $0
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", what)
	quoted = (substr(what, 1, 1) == "\"")
	sub(/^"/, "", what)
	sub(/[">].*$/, "", what)
	if (what == "config.h" || (!quoted && what !~ /^<rdma\//))
		next
	home = FILENAME
	while (home != "" && !(home in may))
		if (!sub(/\/[^\/]*$/, "", home))
			home = ""
	if (home == "") {
		printf "%s:%d: its folder is not in layers.txt\n", FILENAME, FNR
		next
	}
	n = split(may[home], list, /[ \t]+/)
	for (i = 1; i <= n; i++)
		if (list[i] != "" && index(what, list[i]) == 1)
			next
	printf "%s:%d: %s may not include %s\n", FILENAME, FNR, home, what
}
