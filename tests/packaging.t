#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What packages are made by names what there is: one version everywhere, the symbols of the
# library, options of configure, and every file that make install puts somewhere belongs to
# exactly one package. Building and using them is tests/packages, by hand.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

[ -d "$top/debian" ] || skip_all "a tarball has no debian/"
version=$(sed -n 's/^AC_INIT(\[weft\], \[\(.*\)\])$/\1/p' "$top/configure.ac")
ok "configure.ac has a version" test -n "$version"
ok "debian/changelog has it" test \
	"$(sed -n '1s/^weft (\(.*\)-[^-]*) .*/\1/p' "$top/debian/changelog")" = "$version"
ok "packaging/weft.spec has it" grep -qxE "Version: +$version" "$top/packaging/weft.spec"

# The node of the version script, and what tests/symbols.txt lists.
node=$(sed -n 's/^\([A-Z_0-9.]*\) {$/\1/p' "$top/coll/libweft.map")
{
	echo "$node"
	grep -v '^#' "$top/tests/symbols.txt"
} | LC_ALL=C sort >"$tmp/want"
sed -n 's/^ \([^@]*\)@.*/\1/p' "$top/debian/libweft0.symbols" | LC_ALL=C sort >"$tmp/got"
ok "debian/libweft0.symbols has the symbols of the library" diff -u "$tmp/want" "$tmp/got"
ok "all of that node" is_empty "$(sed 1d "$top/debian/libweft0.symbols" | grep -vF "@$node ")"

# Options that configure does not have would stop it, at the packager's.
"$top/configure" --help >"$tmp/help" 2>/dev/null
for file in debian/rules packaging/weft.spec packaging/spack/package.py; do
	grep -oE -- '--with-[a-z]+' "$top/$file" | sort -u >"$tmp/options"
	ok "$file names options" test -s "$tmp/options"
	ok "that configure has" is_empty "$(while read -r option; do
		grep -q -e "$option" "$tmp/help" || echo "$option"
	done <"$tmp/options")"
done

# Files as they would be installed, below the folders of a Debian package.
ok "make install" env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -C "$build" -s install \
	DESTDIR="$tmp/dest"
var() {
	PKG_CONFIG_PATH=$build pkg-config --variable="$1" weft
}
prefix=$(var prefix)
(cd "$tmp/dest" && find . \( -type f -o -type l \) -not -name '*.la') |
	sed -e "s,^\\.$(var providerdir)/,usr/lib/ARCH/libfabric/," \
		-e "s,^\\.$(var libdir)/,usr/lib/ARCH/," -e "s,^\\.$prefix/,usr/," |
	LC_ALL=C sort >"$tmp/files"
ok "something is installed" test -s "$tmp/files"

# owners FILE: the packages whose patterns fit it, or a folder that it is in.
owners() {
	local list pattern name

	for list in "$top"/debian/*.install; do
		name=${list##*/}
		while read -r pattern; do
			# shellcheck disable=SC2053 # a pattern
			if [[ $1 == $pattern || $1 == $pattern/* ]]; then
				echo "${name%.install}"
				break
			fi
		done <"$list"
	done
}
ok "each file belongs to one Debian package" is_empty "$(while read -r file; do
	owner=$(owners "$file" | tr '\n' ' ')
	[ "$(wc -w <<<"$owner")" = 1 ] || echo "$file: ${owner:-to none}"
done <"$tmp/files")"

# In the spec, too: a path without its macros is a pattern of what is installed.
sed -n '/^%files/,/^%changelog/p' "$top/packaging/weft.spec" | grep '^%{' |
	sed -e 's,%{_bindir},usr/bin,' -e 's,%{_libdir},usr/lib/ARCH,' -e 's,%{_datadir},usr/share,' \
		-e 's,%{_mandir},usr/share/man,' -e 's,%{_includedir},usr/include,' >"$tmp/spec"
ok "and to one RPM package" is_empty "$(while read -r file; do
	n=0
	while read -r pattern; do
		# shellcheck disable=SC2053 # a pattern
		[[ $file != $pattern && $file != $pattern/* ]] || n=$((n + 1))
	done <"$tmp/spec"
	[ $n = 1 ] || echo "$file: to $n"
done <"$tmp/files")"

if command -v rpmspec >/dev/null; then
	ok "rpmspec reads the spec" rpmspec -q --queryformat '%{name} %{version}\n' \
		"$top/packaging/weft.spec"
else
	skip 1 "rpmspec is not installed"
fi
if command -v python3 >/dev/null; then
	ok "the recipe for Spack is a program" python3 -c \
		'import sys; compile(open(sys.argv[1]).read(), sys.argv[1], "exec")' \
		"$top/packaging/spack/package.py"
else
	skip 1 "python3 is not installed"
fi

done_testing
