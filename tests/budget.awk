# SPDX-License-Identifier: BSD-2-Clause
# Prints one line for each C function of at least `limit` lines. The house style puts
# the braces of a function, and nothing else, into column 0.

FNR == 1 { start = 0 }
/^[A-Za-z_].*\(/ { name = $0 }
/^\{/ { start = FNR }
/^\}/ && start {
	if (FNR - start - 1 >= limit)
		printf "%s:%d: %d lines: %s\n", FILENAME, start, FNR - start - 1, name
	start = 0
}
