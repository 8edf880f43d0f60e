#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# make install puts everything where users and libfabric look for it, below DESTDIR, and
# the pkg-config file is enough to build a program against what was installed.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

dest=$tmp/dest
var() {
	PKG_CONFIG_PATH=$build pkg-config --variable="$1" weft
}

[ -e "$build/weft.pc" ] || bail "$build/weft.pc was not made"
ok "make install DESTDIR=... works" env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
	make -C "$build" install DESTDIR="$dest"

prefix=$(var prefix)
libdir=$(var libdir)
providerdir=$(var providerdir)
ok "command" test -x "$dest$prefix/bin/weft"
ok "header" test -f "$dest$(var includedir)/weft/weft.h"
ok "library" test -f "$dest$libdir/libweft.so"
ok "provider, in the folder that weft.pc names" \
	test -f "$dest$providerdir/libweft-fi.so"
ok "pkg-config file" test -f "$dest$libdir/pkgconfig/weft.pc"
for page in man1/weft.1 man3/weft.3 man7/fi_weft.7; do
	ok "manual page ${page#*/}" test -f "$dest$prefix/share/man/$page"
done
ok "completion for bash, by the name of the command" \
	test -f "$dest$prefix/share/bash-completion/completions/weft"
ok "nothing outside the prefix" \
	is_empty "$(find "$dest" -type f -not -path "$dest$prefix/*" \
	-not -path "$dest$providerdir/*")"
ok "nothing installed names the build tree" \
	is_empty "$(grep -rlF --include='*.pc' --include='*.h' --include='*.la' "$build" "$dest")"

cat >"$tmp/prog.c" <<'END'
#include <stdio.h>
#include <weft/weft.h>

int main(void)
{
	return puts(weft_version()) < 0;
}
END
pc() {
	PKG_CONFIG_SYSROOT_DIR=$dest PKG_CONFIG_PATH=$dest$libdir/pkgconfig pkg-config "$@"
}
built() {
	# shellcheck disable=SC2046,SC2086 # lists of flags
	${WEFT_TEST_CC:-cc} -o "$tmp/prog" "$tmp/prog.c" $(pc --cflags --libs weft) \
		${built_with:-}
}
ok "a program builds with the pkg-config flags" built
ok "it runs, and the versions agree" test \
	"$(LD_LIBRARY_PATH=$dest$libdir "$tmp/prog")" = "$(pc --modversion weft)"

# Who only builds programs has no development files of libfabric.
ok "the flags need no other pkg-config file" env PKG_CONFIG_LIBDIR="$dest$libdir/pkgconfig" \
	PKG_CONFIG_PATH='' pkg-config --cflags --libs weft

rpath() {
	built_with="-Wl,-rpath,$dest$libdir" built && [ "$("$tmp/prog")" = "$(pc --modversion weft)" ]
}
ok "or with an rpath" rpath
ok "the installed command runs" env FI_PROVIDER=tcp timeout 60 "$dest$prefix/bin/weft" run -n 2 \
	"$dest$prefix/bin/weft" perf barrier --iters 5
if is_sanitized "$dest$providerdir/libweft-fi.so"; then
	skip 1 "libfabric cannot load a module that was built with sanitizers"
else
	ok "and the installed provider is found by its folder" env FI_PROVIDER=weft \
		FI_PROVIDER_PATH="$dest$providerdir" timeout 60 "$dest$prefix/bin/weft" run -n 2 \
		"$dest$prefix/bin/weft" perf barrier --iters 5
fi

# All of it can be moved: nothing but the folder of the command says where the rest is.
moved=$tmp/else/where
if is_sanitized "$dest$providerdir/libweft-fi.so"; then
	skip 4 "libfabric cannot load a module that was built with sanitizers"
elif [ "$(pkg-config --variable=libdir libfabric)/libfabric" = "$providerdir" ]; then
	skip 4 "configured for the folder that libfabric looks in by itself"
else
	mkdir -p "${moved%/*}"
	cp -a "$dest$prefix" "$moved"
	at=$moved${providerdir#"$prefix"}
	uses_moved() {
		env -u FI_PROVIDER -u FI_PROVIDER_PATH "$moved/bin/weft" info >"$tmp/moved"
		cat "$tmp/moved"
		grep -qF "FI_PROVIDER_PATH=$at" "$tmp/moved" && grep -q '^  weft  .*; used' "$tmp/moved"
	}
	ok "moved elsewhere, the command finds the provider beside it" uses_moved
	ok "and so do the ranks that it starts" env -u FI_PROVIDER_PATH FI_PROVIDER=weft timeout 60 \
		"$moved/bin/weft" run -n 2 "$moved/bin/weft" perf barrier --iters 5
	gpu_beside() {
		env -u WEFT_GPU_LIB -u LD_LIBRARY_PATH "$moved/bin/weft" info >"$tmp/moved"
		cat "$tmp/moved"
		! grep -q 'no GPU library' "$tmp/moved"
	}
	ok "and the library for GPUs" gpu_beside
	keeps() {
		FI_PROVIDER_PATH=$tmp "$moved/bin/weft" info | grep -qxF "  FI_PROVIDER_PATH=$tmp"
	}
	ok "but FI_PROVIDER_PATH is left as it is given" keeps
fi

# The header alone, as strict as a user's compiler may be.
printf '#include <weft/weft.h>\nint main(void)\n{\n\treturn 0;\n}\n' >"$tmp/header.c"
strict() {
	# shellcheck disable=SC2046 # a list of flags
	"$@" -fsyntax-only -pedantic -Wall -Wextra -Werror $(pc --cflags weft) "$tmp/header.c"
}
# shellcheck disable=SC2086 # a command with flags
ok "the header is strict C11" strict ${CC:-cc} -std=c11
if command -v clang >/dev/null; then
	ok "the header is C++" strict clang -x c++ -std=c++11
else
	skip 1 "clang is not installed"
fi

ok "uninstall leaves no file" env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
	make -C "$build" uninstall DESTDIR="$dest"
ok "none" is_empty "$(find "$dest" -type f -o -type l)"

done_testing
