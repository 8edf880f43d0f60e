#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# quickstart on a small tree of fakes: what it counts, when it fails, what it installs.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

tree=$tmp/tree
bin=$tmp/bin
mkdir -p "$tree/fabtests/clients" "$tree/fabtests/emuverbs" "$tree/fabtests/uet" "$tree/fabtests/chaos" \
	"$tree/fabtests/softroce" "$tree/tests" "$bin"
cp "$top/quickstart" "$tree/"
: >"$tree/configure.ac"

executable() {
	cat >"$1"
	chmod +x "$1"
}

# The tree's configure makes a makefile whose targets do what the files in $tmp/do say.
executable "$tree/configure" <<END
#!/bin/bash
printf '#!/bin/bash\necho "--enable-werror"\n' >config.status
chmod +x config.status
printf 'all:\n\t@cp "$tmp/do/weft" weft\n' >Makefile
for target in check lint; do
	printf '%s:\n\t@"$tmp/do/%s"\n' "\$target" "\$target" >>Makefile
done
printf 'clean:\n' >>Makefile
echo "weft 0.1.0, to be installed under /usr/local"
END

# Only what quickstart needs, so that a tool can be missing.
for tool in bash sh env cat sed grep awk find sort tail head wc tr cut cksum mkdir rm cp \
	chmod ls nproc id tee make dirname date sleep diff timeout git touch nice gzip ldd; do
	ln -s "$(command -v $tool)" "$bin/$tool"
done
for tool in gcc autoconf automake libtoolize autoreconf pkg-config fi_info clang \
	clang-format cppcheck shellcheck mandoc dpkg-source xz unshare ip python3 mpirun mpicc \
	spin nft qemu-system-x86_64 busybox cpio depmod ib_send_lat \
	ibv_rc_pingpong etcd slurmctld slurmd srun; do
	printf '#!/bin/bash\nexit 0\n' | executable "$bin/$tool"
done

# Clang has its run-time library.
: >"$tmp/libclang_rt.fuzzer-$(uname -m).a"
printf '#!/bin/bash\necho %s\n' "$tmp" | executable "$bin/clang"
ln -s "$(command -v uname)" "$bin/uname"

good() {
	rm -rf "$tree/build" "$tmp/do"
	mkdir "$tmp/do"
	executable "$tmp/do/weft" <<-'END'
		#!/bin/bash
		if [ "$1" = run ]; then echo "a table"; echo "figures: 12 GB/s"; fi
		if [ "$1" = check-plans ]; then echo "all proven"; fi
	END
	executable "$tmp/do/check" <<-'END'
		#!/bin/bash
		printf ':test-result: PASS a\n:test-result: PASS b\n' >x.trs
		printf ':test-result: SKIP a\n:test-result: XFAIL b\n' >y.trs
		: >x.log; : >y.log
	END
	executable "$tmp/do/lint" <<-'END'
		#!/bin/bash
		echo "lint: 5 pass, 1 skip, 0 fail"
	END
	executable "$tree/fabtests/upstream" <<-'END'
		#!/bin/bash
		echo "fabtests weft: 24 pass, 0 skip, 0 fail"
	END
	executable "$tree/fabtests/emuverbs/suite" <<-'END'
		#!/bin/bash
		echo "emuverbs $1: 4 pass, 0 skip, 0 fail"
	END
	executable "$tree/fabtests/uet/suite" <<-'END'
		#!/bin/bash
		echo "uet $1: 5 pass, 0 skip, 0 fail"
	END
	executable "$tree/fabtests/chaos/run" <<-'END'
		#!/bin/bash
		echo "chaos: 9 deaths, 8 joins, 100 steps, 0 wrong sums, 0 hangs"
	END
	executable "$tree/fabtests/clients/run" <<-'END'
		#!/bin/bash
		echo "7 passed, 0 failed, 1 same failure on tcp"
	END
	executable "$tree/fabtests/softroce/run" <<-'END'
		#!/bin/bash
		echo "6 passed, 0 failed"
	END
	executable "$tree/tests/gate" <<-'END'
		#!/bin/bash
		[ "$1" = --build ] || echo "gate $1: 2 pass, 0 skip, 0 fail"
	END
}

# Runs it; the status is in $status, what it printed in $tmp/out.
quickstart() {
	env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u WEFT_TEST_TREE_BEFORE PATH="$bin" \
		timeout 60 "$tree/quickstart" "$@" >"$tmp/out" 2>&1 </dev/null
	status=$?
}

# expect WORDS STATUS LAST-LINE (a regular expression)
expect() {
	local last

	last=$(tail -n 1 "$tmp/out")
	if ! ok "$1" eval "[ $status = $2 ] && [[ \$last =~ \$3 ]]"; then
		diag "status $status, want $2; last line \"$last\", want $3"
		diag "$(tail -n 20 "$tmp/out")"
	fi
}

good
quickstart
expect "the main job, all good" 0 '^quickstart: good: .*: figures: 12 GB/s$'
quickstart
expect "again" 0 '^quickstart: good'
ok "and nothing was generated or configured again" \
	is_empty "$(grep -E '^(generating|configuring)' "$tmp/out")"
echo changed >>"$tree/configure.ac"
quickstart
ok "but is when its inputs changed" grep -q '^configuring' "$tmp/out"
printf '#!/bin/bash\necho bad figures; exit 3\n' >"$tmp/do/weft"
quickstart
expect "a main job that fails" 1 'FAILED: weft perf ended with status 3'
printf '#!/bin/bash\n' >"$tmp/do/weft"
quickstart
expect "a main job that prints nothing" 1 'printed nothing'
printf 'all:\n\tfalse\n' >"$tree/build/Makefile"
quickstart
expect "a build that fails" 1 '.'

good
quickstart gates
# 3 of make check, 5 of lint, the plans, 24 of fabtests, 4 of them over
# emulated devices, 5 over UDP, 7 of the clients, 6 in virtual machines, 2 of each of 4 gates, no temporary files left.
expect "all tests good" 0 '^65 passed, 0 failed, 3 skipped$'
quickstart check
expect "all but the bare build" 0 '^63 passed, 0 failed, 3 skipped$'

printf '#!/bin/bash\nexit 77\n' >"$tree/fabtests/clients/run"
quickstart check
expect "a client that is not installed" 0 '^50 passed, 0 failed, 3 skipped$'
printf '#!/bin/bash\necho 3 passed, 2 failed, 0 same failure on tcp; exit 1\n' \
	>"$tree/fabtests/clients/run"
quickstart check
expect "a client's test that failed" 1 '^53 passed, 2 failed, 2 skipped$'

good
printf '#!/bin/bash\necho softroce: no such kernel >&2; exit 77\n' >"$tree/fabtests/softroce/run"
quickstart check
expect "no virtual machines" 0 '^57 passed, 0 failed, 4 skipped$'
ok "and it is said why" grep -q '| softroce: no such kernel$' "$tmp/out"
printf '#!/bin/bash\necho 4 passed, 2 failed; exit 1\n' >"$tree/fabtests/softroce/run"
quickstart check
expect "tests that failed in them" 1 '^61 passed, 2 failed, 3 skipped$'
printf '#!/bin/bash\necho 6 passed, 0 failed; exit 1\n' >"$tree/fabtests/softroce/run"
quickstart check
expect "their status counts too" 1 '^63 passed, 1 failed, 3 skipped$'
printf '#!/bin/bash\necho no machine came up >&2; exit 1\n' >"$tree/fabtests/softroce/run"
quickstart check
expect "machines that did not come up" 1 '^57 passed, 1 failed, 3 skipped$'

good
printf 'printf ":test-result: FAIL a\\n" >z.trs; : >z.log; exit 1\n' >>"$tmp/do/check"
quickstart gates
expect "a test that failed" 1 '^65 passed, 1 failed, 3 skipped$'

good
printf '#!/bin/bash\nexit 2\n' >"$tmp/do/check"
quickstart gates
expect "tests that could not be built" 1 '^62 passed, 1 failed, 2 skipped$'

good
echo 'exit 1' >>"$tree/fabtests/upstream"
quickstart gates
expect "a command that fails in spite of its figures" 1 '^65 passed, 1 failed, 3 skipped$'

good
printf '#!/bin/bash\necho nothing to count\n' >"$tmp/do/lint"
quickstart gates
expect "a command without figures" 1 '^60 passed, 1 failed, 2 skipped$'

good
rm "$tree/fabtests/upstream"
quickstart gates
expect "a command that is not there" 1 '^41 passed, 1 failed, 3 skipped$'

for gate in asan fuzz; do
	good
	executable "$tree/tests/gate" <<-END
		#!/bin/bash
		[ "\$1" != $gate ] || exit 1
		echo "gate \$1: 2 pass, 0 skip, 0 fail"
	END
	quickstart gates
	expect "a gate that says nothing: $gate" 1 '^63 passed, 1 failed, 3 skipped$'
done

good
# shellcheck disable=SC2016 # expanded by the script that it is written to
printf ': >"$TMPDIR/left"\n' >>"$tmp/do/check"
quickstart gates
expect "a temporary file that was left" 1 '^64 passed, 1 failed, 3 skipped$'

# Only of packages that are missing, with what and why; never with --no-install.
good
rm "$bin/shellcheck"
executable "$bin/apt-get" <<END
#!/bin/bash
echo "\$*" >>"$tmp/apt"
if [ "\$(wc -l <"$tmp/apt")" = 1 ]; then
	echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1"
	exit 100
fi
END
quickstart check --no-install
ok "--no-install does not call apt-get" test ! -e "$tmp/apt"
ok "but says what is missing, and why" \
	grep -q '^  shellcheck: static analysis of scripts$' "$tmp/out"
expect "and goes on" 0 '^54 passed'
if [ "$(id -u)" = 0 ]; then
	quickstart
	ok "the main job needs no tools of the tests" test ! -e "$tmp/apt"
	quickstart gates
	ok "installing waits for a lock" grep -q 'holds the package lock; waiting' "$tmp/out"
	ok "and then installs what is missing and no more" \
		grep -qE 'install -y --no-install-recommends shellcheck ?$' "$tmp/apt"
	expect "and goes on" 0 '^56 passed'
	printf '#!/bin/bash\necho "E: no such package"; exit 100\n' >"$bin/apt-get"
	rm "$bin/gcc" "$bin/clang"
	quickstart
	expect "a compiler that cannot be installed" 1 'cannot build without: gcc'
else
	skip 5 "not root"
fi

quickstart --no-such
expect "an option that there isn't" 2 '.'
quickstart --help
expect "--help" 0 '.'

done_testing
