# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# For scripts that run long commands: whoever ends the script (INT, TERM) ends the command.
# Bash runs traps only between commands, so that each runs behind it and is waited for.
# Sourced; use `COMMAND... & child_wait`, or child_show.

child=

# child_wait: for the last command that was started; its status.
child_wait()
{
	local rc

	child=$!
	wait "$child"
	rc=$?
	child=
	return "$rc"
}

# child_show LOG COMMAND...: what it says is shown, and kept in LOG; its status.
child_show()
{
	local log=$1 shown rc out

	shift
	exec {out}> >(exec tee "$log")
	shown=$!
	"$@" >&"$out" 2>&1 {out}>&- &
	exec {out}>&-
	child_wait
	rc=$?
	wait "$shown"
	return "$rc"
}

# child_end STATUS: ends the command, by force where it heeds nothing else, and the script.
child_end()
{
	local i

	trap '' INT TERM
	if [ -n "$child" ]; then
		kill -TERM "$child" 2>/dev/null
		for ((i = 0; i < 50; i++)); do
			kill -0 "$child" 2>/dev/null || break
			sleep 0.1
		done
		kill -KILL "$child" 2>/dev/null
		wait "$child" 2>/dev/null
	fi
	exit "$1"
}

trap 'child_end 130' INT
trap 'child_end 143' TERM
