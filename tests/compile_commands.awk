# SPDX-License-Identifier: BSD-2-Clause
# From what make --dry-run V=1 prints to compile_commands.json: one entry per
# compilation. libtool's own words are left out, so that what remains is the compiler's
# command; -v dir=FOLDER is where make runs.

function quoted(s) {
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	gsub(/\t/, " ", s)
	return "\"" s "\""
}

# Recipes go on over lines that end in a backslash.
/\\$/ {
	sub(/[ \t]*\\$/, "")
	line = line $0 " "
	next
}

{
	line = line $0
	# A compilation, and the move of its dependency file after it.
	n = split(line, part, /[;&][&;]*/)
	line = ""
	for (i = 1; i <= n; i++)
		entry(part[i])
}

function entry(cmd,    file, w, m, j) {
	if (cmd !~ / -c / || cmd !~ /\.c([ '"`]|$)/)
		return
	sub(/^.*--mode=compile +/, "", cmd)
	sub(/^[ \t]+/, "", cmd)
	gsub(/`test -f '[^']*' \|\| echo '[^']*'`/, "", cmd)
	m = split(cmd, w, /[ \t]+/)
	for (j = 1; j <= m; j++)
		if (w[j] ~ /\.c$/)
			file = w[j]
	if (file == "" || (cmd in seen))
		return
	seen[cmd] = 1
	printf "%s{\n  \"directory\": %s,\n  \"command\": %s,\n  \"file\": %s\n}", \
		count++ ? ",\n" : "[\n", quoted(dir), quoted(cmd), quoted(file)
}

END {
	print count ? "\n]" : "[]"
}
