# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2154 # $tmp is of tap.sh
# For tests that break a unit, one rule at a time, to see that another test finds it. To be
# sourced after tap.sh.

# mutate FROM TO CHANGE...: makes TO of FROM by substitutions of perl over the whole text. Each must
# match in one place: one that matches none changes nothing any more, and one that matches
# several breaks more than the rule that it is about. Says why not, and returns 1, if so.
mutate() {
	local from=$1 to=$2

	shift 2
	perl -0777 -e '
		my ($from, $to, @changes) = @ARGV;
		open(my $in, "<", $from) or die "$from: $!\n";
		local $_ = <$in>;
		for my $change (@changes) {
			my $before = $_;
			my $places = eval "${change}g";
			die "$change: $@" if $@;
			$places ||= 0;
			die "matches in $places places, not in one: $change\n" if $places != 1;
			die "changes nothing: $change\n" if $_ eq $before;
		}
		open(my $out, ">", $to) or die "$to: $!\n";
		print $out $_;
		close($out) or die "$to: $!\n";
	' "$from" "$to" "$@" 2>"$tmp/mutate" && return
	diag "$(<"$tmp/mutate")"
	return 1
}
