#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The parts of fabtests/upstream that need neither a network nor a provider.
set -u

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
fabtests=$(dirname "$here")
# shellcheck source=fabtests/lib/say.sh
. "$fabtests/lib/say.sh"
# shellcheck source=fabtests/lib/obtain.sh
. "$fabtests/lib/obtain.sh"
# shellcheck source=fabtests/lib/lists.sh
. "$fabtests/lib/lists.sh"
# shellcheck source=fabtests/lib/script.sh
. "$fabtests/lib/script.sh"
# shellcheck source=fabtests/lib/table.sh
. "$fabtests/lib/table.sh"

dir=$(mktemp -d) || exit 99
trap '[ $BASHPID = $$ ] && rm -rf "$dir"' EXIT
run=0 failed=0

# is GOT WANTED WHAT
is()
{
	run=$((run + 1))
	if [ "$1" = "$2" ]; then
		say "ok $run - $3"
		return
	fi
	failed=$((failed + 1))
	say "not ok $run - $3"
	printf '%s\n' "got:" "$1" "want:" "$2" | sed 's/^/# /'
}

# A fabtests of our own making: what matters is how its programs end.
fake_install()
{
	mkdir -p "$dir/inst/bin"
	cat >"$dir/inst/bin/fi_rdm" <<'END'
#!/bin/sh
echo "words of $*"
case " $* " in
*' g00n13s '*) exit "${FAKE_NODATA:-61}" ;;
*' -p alone -s 127.0.0.1 127.0.0.1 '*) exit 3 ;;
*' -p none '*) exit 61 ;;
*' -p hangs '*) sleep 60 ;;
esac
exit 0
END
	chmod +x "$dir/inst/bin/fi_rdm"
	cat >"$dir/inst/bin/runfabtests.sh" <<'END'
functional_tests=(
	"fi_rdm"
	"fi_other -e msg"
)
END
}

# upstream_run ARGUMENT...: sets out, status.
upstream_run()
{
	out=$(FABTESTS=$dir/inst "$fabtests/upstream" "$@" 2>&1)
	status=$?
}

last_line()
{
	tail -n 1 <<<"$out"
}

# ---- package sources, both notations
mkdir -p "$dir/parts" "$dir/out"
printf '%s\n' '# a comment' 'deb [arch=amd64 signed-by=/k] scheme://host/d suite main' \
	'deb-src scheme://host/d suite main' '  deb scheme://host/e suite main' \
	>"$dir/parts/one.list"
printf '%s\n' 'deb scheme://host/f suite main' >"$dir/main.list"
printf '%s\n' 'Types: deb deb-src' 'URIs: scheme://host/d' 'Suites: a b' 'Signed-By:' \
	' -----BEGIN' ' Types: deb' '' 'types: deb' 'Enabled: no' >"$dir/parts/two.sources"
: >"$dir/parts/three.sources.disabled"
before=$(cat "$dir"/parts/*)
sources_derive "$dir/main.list" "$dir/parts" "$dir/out"
is "$(cat "$dir/out/one.list")" 'deb-src [arch=amd64 signed-by=/k] scheme://host/d suite main
deb-src scheme://host/d suite main
deb-src scheme://host/e suite main' 'one-line entries become deb-src'
is "$(cat "$dir/out/main.list")" 'deb-src scheme://host/f suite main' 'so does sources.list'
is "$(cat "$dir/out/two.sources")" 'Types: deb-src
URIs: scheme://host/d
Suites: a b
Signed-By:
 -----BEGIN
 Types: deb

Types: deb-src
Enabled: no' 'deb822 stanzas become deb-src, nothing else in them changes'
is "$(ls "$dir/out")" 'main.list
one.list
two.sources' 'files that apt ignores are ignored'
is "$(cat "$dir"/parts/*)" "$before" 'what was read is unchanged'

# ---- excludes
printf '%s\n' '# text' '' 'fi_a -e msg # there are no message endpoints' >"$dir/good"
excludes_read "$dir/good"
is "$?" 0 'an exclude with a reason is read'
is "$(exclude_reason 'fi_a -e msg -v')" 'there are no message endpoints' 'and gives the reason'
is "$(exclude_reason 'fi_a -e rdm' || say none)" none 'other lines are not excluded'
for bad in 'fi_a' 'fi_a #' 'fi_a # ' ' # reason only'; do
	say "$bad" >"$dir/bad"
	(excludes_read "$dir/bad" >/dev/null 2>&1)
	is "$?" 1 "'$bad' is refused"
done
is "$(excludes_read "$fabtests/exclude/weft" && say read)" read 'the exclude file of weft is well formed'

# ---- upstream's results
export results=$dir/parsed.results
: >"$results"
script_parse >/dev/null <<'END'
- name:   fi_rdm -p "weft"
  result: Pass
  time:   3
- name:   fi_msg -p "weft"
  result: Notrun
  time:   1
- name:   fi_dgram -p "weft"
  timestamp: 20260101-120000+0000
  result: Excluded
  time:   0
- name:   fi_bw -v -p "weft"
  result: Fail
  time:   7
  server_cmd: x
  server_stdout: |
    result: Pass
- name:   fi_ubertest
  result: Pass [8/8]
  time:   20
# ----
# Total Pass      2
END
is "$(cat "$results")" "$(printf '%s\t%s\t%s\n' pass 3 fi_rdm skip 1 fi_msg skip 0 fi_dgram \
	fail 7 'fi_bw -v' pass 20 fi_ubertest)" "upstream's results are read back"
results_count "$results"
is "$count_pass $count_skip $count_fail" '2 2 1' 'and counted'
printf 'pass\t1\tfi_rdm\n' >"$dir/other.results"
is "$(results_table "$dir" parsed other | awk '{ $1 = $1 } /^fi_(rdm|bw)|pass.skip/')" \
	'fi_rdm pass 3 pass 1
fi_bw -v fail 7 -
pass/skip/fail 2/2/1 1/0/0' 'the table has both'

# ---- options
fake_install
upstream_run --nonsense
is "$status" 2 'an unknown option is an error'
upstream_run --env 1=2
is "$status" 2 'so is an --env that sets nothing'
upstream_run --provider 'a b'
is "$status" 2 'so is a strange provider'
FI_PROVIDER_PATH=$dir upstream_run --provider weft
is "$status:${out%%:*}" 1:fabtests 'a missing libweft-fi.so is said'
out=$(FABTESTS=$dir/no "$fabtests/upstream" --provider tcp 2>&1)
is "$?:$out" "1:FABTESTS=$dir/no: no bin/fi_rdm there" 'so is a wrong FABTESTS'

# ---- never bare
out=$(bash "$fabtests/lib/inside.sh" tcp core 1 no "$dir" "$dir/inst/bin" "$dir" 2>&1)
is "$?:$(grep -c 'namespace of its own' <<<"$out")" 1:1 'the inner side refuses to run bare'

if ! unshare --pid --mount --net --fork --mount-proc true 2>/dev/null; then
	for what in result hidden left timeout; do
		run=$((run + 1))
		say "ok $run # SKIP namespaces are refused here ($what)"
	done
else
	upstream_run --provider both --list '^fi_rdm( g00n13s)?$'
	is "$status:$(last_line)" '0:fabtests both: 2 pass, 0 skip, 0 fail' 'passes are counted'
	upstream_run --provider alone --list '^fi_rdm$'
	is "$status:$(last_line)" '1:fabtests alone: 0 pass, 0 skip, 1 fail' \
		'one side that fails is a failure'
	is "$(grep -c 'words of' <<<"$out")" 2 'which shows what both sides said'
	upstream_run --provider none --list '^fi_rdm$'
	is "$status:$(last_line)" '0:fabtests none: 0 pass, 1 skip, 0 fail' 'not run is a skip'
	upstream_run --provider none --list core
	is "$status:$(grep -c 'not run: no data' <<<"$out")" 1:2 \
		'but in the list core it is a failure'
	upstream_run --provider both --list '^fi_rdm g00n13s$' --env FAKE_NODATA=0
	is "$status:$(last_line)" '1:fabtests both: 0 pass, 0 skip, 1 fail' \
		'a success where no data is wanted is a failure, and --env arrives'
	upstream_run --provider hangs --list '^fi_rdm$' --timeout 1
	is "$status:$(last_line)" '1:fabtests hangs: 0 pass, 0 skip, 1 fail' 'a hang is ended'
fi

say "1..$run"
[ "$failed" -eq 0 ]
