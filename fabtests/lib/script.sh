# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# The list `all`: upstream's own script with its complete sets, and its results read
# back. Variables of inside.sh: provider, timeout, bin, results, exclude_res, ubertest_dir,
# address, client_address.
# shellcheck disable=SC2154

# Reads the script's verbose output; a test's output follows its result, indented, and is
# there for failures only.
script_parse()
{
	awk -v results="$results" '
		function flush() {
			if (name == "")
				return
			printf "%s\t%s\t%s\n", kind, time, name >> results
			printf "%-52s %-4s %6s s%s\n", name, kind, time, note
			fflush()
			name = ""
		}
		/^- name:/ {
			flush()
			sub(/^- name: */, "")
			sub(/ *-p ".*"/, "")
			name = $0; time = "0"; note = ""
			next
		}
		/^  timestamp:/ { next } # newer versions
		/^  result:/ {
			sub(/^  result: */, "")
			kind = "fail"
			if ($0 ~ /^Pass/)
				kind = "pass"
			else if ($0 ~ /^(Notrun|Excluded)/)
				kind = "skip"
			note = $0 ~ /^(Pass|Fail)$/ ? "" : "  (" $0 ")"
			next
		}
		/^  time:/ { time = $2; flush(); next }
		/^#/ { flush(); next }
		{ flush(); print "    " $0; fflush() }
		END { flush() }'
}

# ssh [OPTION]... HOST COMMAND, for the two hosts that there are here.
script_ssh()
{
	cat <<-END
		#!/bin/bash
		case \${*: -2:1} in
		$client_address) exec nsenter --net=/proc/$WEFT_NETNS_B/ns/net bash -c "\${*: -1}" ;;
		*) exec bash -c "\${*: -1}" ;;
		esac
	END
}

script_run()
{
	local script=$bin/runfabtests.sh configs=$bin/../share/fabtests/test_configs
	local arguments=(-v -t all -T "$timeout" -p "$bin" -g "$address") hosts=()

	[ -x "$script" ] || die 1 "no $script: the list 'all' is run by it"
	command -v python3 >/dev/null || die 1 "python3 is missing, upstream's script needs it"
	command -v setpriv >/dev/null || die 1 "setpriv (util-linux) is missing"
	command -v ps >/dev/null || die 1 "ps (procps) is missing, upstream's script needs it"
	# Relative to its working directory it looks for the configurations.
	mkdir test_configs
	[ -d "$configs" ] && ln -s "$configs"/* test_configs/
	# A provider that upstream has no configurations of may have one here.
	if [ -f "$ubertest_dir/$provider.test" ] && [ ! -e "test_configs/$provider" ]; then
		mkdir "test_configs/$provider"
		ln -s "$ubertest_dir/$provider.test" "test_configs/$provider/all.test"
	fi
	if [ ${#exclude_res[@]} -gt 0 ]; then
		printf '%s\n' "${exclude_res[@]}" >excludes
		arguments+=(-f excludes)
	fi
	# When a client fails the script kills the shell around the server, and would leave
	# the server on the next test's port. So servers end with that shell.
	mkdir -p shims
	printf '#!/bin/sh\nexec setpriv --pdeathsig TERM %s "$@"\n' "$(command -v timeout)" \
		>shims/timeout
	chmod +x shims/timeout
	# Between namespaces it is given hosts, and reaches them by what it takes for ssh;
	# else none, and it uses no ssh. Its exit status counts failures, which the results
	# say better.
	if [ -n "${WEFT_NETNS_B-}" ]; then
		script_ssh >shims/ssh
		chmod +x shims/ssh
		hosts=("$address" "$client_address")
	fi
	PATH=$PWD/shims:$PATH bash "$script" "${arguments[@]}" "$provider" "${hosts[@]}" 2>&1 |
		script_parse
}
