# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Completion of the command weft for bash. What commands and options there are is asked of the
# command itself, so that there is no second list of them. Needs no other completion library.

# The command as it was typed, if it can be run.
_weft_ask() {
	local command=${COMP_WORDS[0]/#\~\//$HOME/}

	"$command" "$@" </dev/null 2>/dev/null
}

_weft_commands() {
	_weft_ask --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'
}

# Options that a help text has at the beginning of a line; the long ones also behind others.
_weft_options() {
	_weft_ask "$1" --help | grep -oE '^ +(-[a-z], )?--[a-z][a-z-]*|^ +-[a-z]( |,|$)' |
		grep -oE -- '--?[a-z][a-z-]*'
	printf '%s\n' --help
}

# Operations, which weft perf lists one on a line.
_weft_operations() {
	_weft_ask perf --help | sed -n 's/^  \([a-z_]*\)$/\1/p'
	printf '%s\n' all allv
}

_weft_words() {
	# Words of ours have no characters that need quoting.
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_weft_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}

# The value of an option: prints words, or FILES; fails where it is neither.
_weft_value() {
	case $1 in
	--bind) echo core none ;;
	--memory) echo host cuda ;;
	--what) echo time bandwidth ;;
	--placement) echo packed scattered rails ;;
	--out | --csv | --svg | --xml | --sys | --root | --fabric | --state | --trace) echo FILES ;;
	-n | --ranks | --timeout | --sizes | --type | --op | --algo | --algorithm | --budget | \
		--iters | --bytes | --seed | --eager | --chunk | --gap | --work | --slow | --late | \
		--listen | --size | --pids | --job | --stuck | --step | --interval | \
		--watch | --count) echo ;;
	*) return 1 ;;
	esac
}

# Where the program begins among the words of weft run; 0 when it isn't there yet.
_weft_program() {
	local i

	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-n | --ranks | --timeout | --bind) i=$((i + 1)) ;;
		-*) ;;
		*)
			echo "$i"
			return
			;;
		esac
	done
	echo 0
}

_weft() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local cmd=${COMP_WORDS[1]} values at

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		_weft_words "$(_weft_commands) help --help --version" "$cur"
		return
	fi
	if [[ $cmd == run ]]; then
		at=$(_weft_program)
		if ((at)); then
			# The program's own arguments: ours where it is this command.
			if [[ ${COMP_WORDS[at]##*/} == weft ]]; then
				COMP_WORDS=("${COMP_WORDS[@]:at}")
				COMP_CWORD=$((COMP_CWORD - at))
				_weft
			else
				_weft_files "$cur"
			fi
			return
		fi
	fi
	if values=$(_weft_value "$prev"); then
		if [[ $values == FILES ]]; then
			_weft_files "$cur"
		else
			_weft_words "$values" "$cur"
		fi
		return
	fi
	if [[ $cur == -* ]]; then
		_weft_words "$(_weft_options "$cmd")" "$cur"
		return
	fi
	case $cmd in
	help) _weft_words "$(_weft_commands)" "$cur" ;;
	perf | tune | sim) _weft_words "$(_weft_operations)" "$cur" ;;
	stat) ((COMP_CWORD != 2)) || _weft_words hang "$cur" ;;
	trace)
		if ((COMP_CWORD == 2)); then
			_weft_words "dump json analyze" "$cur"
		else
			_weft_files "$cur"
		fi
		;;
	run)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -c -- "$cur"; compgen -f -- "$cur")
		;;
	*) _weft_files "$cur" ;;
	esac
}

complete -F _weft weft
