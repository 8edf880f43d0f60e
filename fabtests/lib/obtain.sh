# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
# Where the fabtests programs come from: an installed copy, the cache, or the
# distribution's mpich source package, which carries them. The system's own package
# lists and sources are read and never changed.

# sources_derive SOURCELIST PARTS_DIR OUT_DIR: writes deb-src twins of the configured
# binary entries, in both of apt's notations, to OUT_DIR.
sources_derive()
{
	local list=$1 parts=$2 out=$3 f

	for f in "$list" "$parts"/*.list; do
		[ -f "$f" ] || continue
		sed -n 's/^[[:space:]]*deb\(-src\)\{0,1\}[[:space:]]\{1,\}/deb-src /p' "$f" \
			>"$out/$(basename "$f" .list).list"
	done
	for f in "$parts"/*.sources; do
		[ -f "$f" ] || continue
		# Only the field's own line changes: a Signed-By may hold a key that goes on
		# over many lines.
		sed 's/^[Tt]ypes:.*/Types: deb-src/' "$f" >"$out/$(basename "$f")"
	done
}

# apt_private DIR COMMAND...: apt-get with lists, cache and sources of its own below DIR.
apt_private()
{
	local dir=$1

	shift
	apt-get -q -y -o Dir::Etc::sourcelist=/dev/null \
		-o Dir::Etc::sourceparts="$dir/sources" \
		-o Dir::State::lists="$dir/lists" -o Dir::Cache="$dir/cache" \
		-o APT::Sandbox::User=root "$@"
}

# The unpacked mpich source package in DIR/mpich.
mpich_fetch()
{
	local dir=$1 WEFT_LIST='' WEFT_PARTS='' tool

	for tool in apt-get apt-config dpkg-source; do
		command -v "$tool" >/dev/null && continue
		say "$tool is missing (Debian and Ubuntu: apt, dpkg-dev);" \
			"or set FABTESTS to an installed copy" >&2
		return 1
	done
	mkdir -p "$dir"/{sources,lists/partial,cache/archives/partial} || return
	eval "$(apt-config shell WEFT_LIST Dir::Etc::sourcelist/f WEFT_PARTS Dir::Etc::sourceparts/d)"
	sources_derive "$WEFT_LIST" "$WEFT_PARTS" "$dir/sources"
	say 'fetching the mpich source package'
	# A third party's entry may have no sources: what counts is that mpich is found.
	apt_private "$dir" update >"$dir/update.log" 2>&1
	if ! (cd "$dir" && apt_private "$dir" source --download-only mpich) >"$dir/source.log" 2>&1; then
		cat "$dir/update.log" "$dir/source.log" >&2
		say 'no mpich source package to be had (log above); a network or a mirror is' \
			'needed once, or FABTESTS=DIR with an installed copy of fabtests' >&2
		return 1
	fi
	(cd "$dir" && dpkg-source --no-copy -x mpich_*.dsc mpich) >"$dir/unpack.log" 2>&1 &&
		return
	cat "$dir/unpack.log" >&2
	say 'the mpich source package could not be unpacked' >&2
	return 1
}

# The unpacked source of fabtests in DIR/fabtests.
fabtests_fetch()
{
	mpich_fetch "$1" || return
	mv "$1/mpich/modules/libfabric/fabtests" "$1/fabtests" && return
	say 'the mpich source package carries no fabtests' >&2
	return 1
}

# fabtests_build SOURCE PREFIX
fabtests_build()
{
	local src=$1 prefix=$2 tool

	for tool in autoreconf libtoolize make cc; do
		command -v "$tool" >/dev/null && continue
		say "$tool is needed to build fabtests and is missing" >&2
		return 1
	done
	say 'fabtests: building (about 35 s, once)'
	if ! (cd "$src" && autoreconf -if && ./configure --prefix="$prefix" CFLAGS='-O2 -g -w' &&
		make -j2 install) >"$src/build.log" 2>&1; then
		tail -n 40 "$src/build.log" >&2
		say 'fabtests could not be built (end of the log above)' >&2
		return 1
	fi
}

# fabtests_obtain BUILD_DIR: sets FABTESTS_BIN.
fabtests_obtain()
{
	local build=$1 cache key work version

	if [ -n "${FABTESTS:-}" ]; then
		FABTESTS_BIN=$(cd "$FABTESTS/bin" 2>/dev/null && pwd)
		[ -x "$FABTESTS_BIN/fi_rdm" ] && return
		say "FABTESTS=$FABTESTS: no bin/fi_rdm there" >&2
		return 1
	fi
	if [ -d "$build" ]; then
		cache=$build/fabtests
	else
		cache=${TMPDIR:-/tmp}/weft-fabtests-$(id -u)
	fi
	# A build is good for the libfabric headers that it was made with.
	version=$(pkg-config --modversion libfabric 2>/dev/null) || version=unknown
	for key in "$cache"/*-libfabric-"$version"; do
		[ -e "$key/complete" ] && [ -O "$key" ] && FABTESTS_BIN=$key/bin && return
	done

	mkdir -p "$cache" || return
	# A shared temporary folder may hold somebody else's folder of that name.
	if ! [ -O "$cache" ]; then
		say "$cache belongs to somebody else: set TMPDIR or WEFT_TOP_BUILDDIR" >&2
		return 1
	fi
	work=$(mktemp -d "$cache/work.XXXXXX") || return
	if fabtests_fetch "$work"; then
		key=$cache/$(sed -n 's/^AC_INIT(\[fabtests\], *\[\([0-9A-Za-z.]*\)\].*/\1/p' \
			"$work/fabtests/configure.ac")-libfabric-$version
		rm -rf "$key"
		if fabtests_build "$work/fabtests" "$key"; then
			: >"$key/complete"
			rm -rf "$work"
			FABTESTS_BIN=$key/bin
			return
		fi
	fi
	rm -rf "$work"
	return 1
}
