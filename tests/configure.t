#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What configure refuses, with a sentence that says what to do; and its table. Each run
# ends early or takes about two seconds.
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

[ -x "$top/configure" ] || bail "configure was not generated"
cc=${CC:-cc}
mkdir "$tmp/build"

# Runs configure in a folder of its own; its output is in $tmp/out.
configure() {
	rm -rf "$tmp/build"
	mkdir "$tmp/build"
	(cd "$tmp/build" && "$top/configure" CC="$cc" "$@") >"$tmp/out" 2>&1 </dev/null
}

# refused WORDS TEXT OPTION...: fails, and says TEXT.
refused() {
	local words=$1 text=$2

	shift 2
	if configure "$@"; then
		ok "$words" false
	else
		ok "$words" grep -qF -- "$text" "$tmp/out" || diag "$(tail -n 3 "$tmp/out")"
	fi
}

refused "a sanitizer that there isn't" 'there is no sanitizer "adress"' \
	--enable-sanitizers=adress
refused "thread with another one" 'thread goes with no other sanitizer' \
	--enable-sanitizers=address,thread
refused "a switch that is neither on nor off" 'want "yes" or "no"' --enable-werror=maybe
refused "an option that there isn't" 'unrecognized options: --enable-wrror' --enable-wrror
refused "a folder for the provider that is none" 'want an absolute folder, or "system"' \
	--with-providerdir=lib
refused "libfabric left out" 'cannot be built without libfabric' --with-libfabric=no
refused "a prefix without the library" 'looked for lib/pkgconfig/hwloc.pc' \
	--with-hwloc="$tmp/nothing"
refused "a prefix that is none" 'want "yes", "no" or an absolute prefix' --with-hwloc=maybe
refused "a prefix without the headers" 'looked for include/infiniband/verbs.h' \
	--with-verbs="$tmp/nothing"
refused "no prefix of headers" 'want "yes", "no" or an absolute prefix' --with-verbs=maybe
if ! echo '#ifndef __clang__
#error
#endif' | $cc -E -x c - >/dev/null 2>&1; then
	refused "fuzzing without clang" '--enable-fuzzing needs clang' --enable-fuzzing
fi

# A pkg-config that knows libfabric and nothing else.
mkdir "$tmp/pc"
cp "$(pkg-config --variable=pcfiledir libfabric)/libfabric.pc" "$tmp/pc/"
alone=(PKG_CONFIG_LIBDIR="$tmp/pc" PKG_CONFIG_PATH=)
refused "asked for and missing" '--with-hwloc was asked for' --with-hwloc "${alone[@]}"
ok "not asked for and missing is a row" configure "${alone[@]}"
ok "which says so" grep -qE '^ +hwloc +not found +[a-z]' "$tmp/out"
ok "and where the provider goes" grep -qE '^ +provider +(by path|found) +[a-z]' "$tmp/out"
ok "turned off is another" configure --with-hwloc=no --with-verbs=no --enable-debug \
	--with-providerdir=system
ok "the provider goes to where libfabric looks" grep -qx \
	"providerdir = $(pkg-config --variable=libdir libfabric)/libfabric" "$tmp/build/Makefile"
ok "the table says so" grep -qE '^ +provider +found +libfabric looks in /' "$tmp/out"
ok "which says so" grep -qE '^ +hwloc +turned off +[a-z]' "$tmp/out"
ok "of verbs too" grep -qE '^ +verbs +turned off +[a-z]' "$tmp/out"
ok "HAVE_VERBS is not defined" grep -q 'undef HAVE_VERBS' "$tmp/build/config.h"
ok "and the table ends the output" test "$(grep -v '^$' "$tmp/out" | tail -n 1 |
	awk '{ print $1, $2 }')" = "debug on"
ok "HAVE_HWLOC is not defined" grep -q 'undef HAVE_HWLOC' "$tmp/build/config.h"
ok "--enable-debug defines WEFT_DEBUG" grep -q 'define WEFT_DEBUG 1' "$tmp/build/config.h"
ok "and builds with -O0" grep -qx 'CFLAGS = -O0 -g3' "$tmp/build/Makefile"
ok "the user's CFLAGS stay" configure --enable-debug CFLAGS=-O1
ok "as they are" grep -qx 'CFLAGS = -O1' "$tmp/build/Makefile"

# libfabric from a prefix of one's own.
mkdir -p "$tmp/own/lib/pkgconfig"
cp "$tmp/pc/libfabric.pc" "$tmp/own/lib/pkgconfig/"
ok "--with-libfabric=PATH takes it from there" configure --with-libfabric="$tmp/own"
ok "at run time too" grep -q "^LIBFABRIC_LIBS = .*-rpath,$tmp/own/lib" "$tmp/build/Makefile"

done_testing
