#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A coordinator that keeps its state in an etcd which wants TLS and a certificate; and
# everything that may be wrong with certificates, which is said.
: "${WEFT_TOP_SRCDIR:=$(cd "$(dirname "$0")/../.." && pwd)}"
# shellcheck source=tests/tap.sh
. "$WEFT_TOP_SRCDIR/tests/tap.sh" || exit 99
# shellcheck source=cli/tests/etcd.sh
. "$WEFT_TOP_SRCDIR/cli/tests/etcd.sh"

command -v openssl >/dev/null || skip_all "openssl is not installed"
unset WEFT_ETCD_CA WEFT_ETCD_CERT WEFT_ETCD_KEY

# refused TEXT [NAME=VALUE]... PLACE: a coordinator that would keep its state there ends, and says
# that.
refused() {
	local text=$1 place=${*: -1}

	says 1 "$text" env "${@:2:$#-2}" "$weft" coordinator --listen 127.0.0.1:0 \
		--state "$place" --size 2 --first
}

if ! grep -q '^#define HAVE_LIBCRYPTO 1' "$build/config.h"; then
	ok "a build without libcrypto says that it has no TLS" \
		refused 'was built without libcrypto and has no TLS' etcds://127.0.0.1:1/x
	done_testing
	exit
fi

# certificate NAME AUTHORITY EXTENSIONS [DAYS]: NAME.pem and NAME.key, in $tmp.
certificate() {
	local name=$1 authority=$2 extensions=$3 days=${4-10}

	if openssl req -new -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$tmp/$name.key" \
		-out "$tmp/$name.csr" >"$tmp/openssl" 2>&1 &&
		openssl x509 -req -in "$tmp/$name.csr" -CA "$tmp/$authority.pem" \
			-CAkey "$tmp/$authority.key" -CAcreateserial -days "$days" \
			-extfile <(printf '%s\n' "$extensions") -out "$tmp/$name.pem" \
			>>"$tmp/openssl" 2>&1; then
		return
	fi
	bail "no certificate: $(<"$tmp/openssl")"
}

# authority NAME
authority() {
	openssl req -x509 -newkey rsa:2048 -nodes -days 10 -subj "/CN=$1" \
		-addext basicConstraints=critical,CA:TRUE -keyout "$tmp/$1.key" \
		-out "$tmp/$1.pem" >"$tmp/openssl" 2>&1 || bail "no CA: $(<"$tmp/openssl")"
}

both='extendedKeyUsage=serverAuth,clientAuth'
authority ours
authority other
certificate server ours "subjectAltName=IP:127.0.0.1
$both"
certificate member ours "$both"
# It was valid for no time at all.
certificate expired ours "subjectAltName=IP:127.0.0.1
$both" 0

etcd_scheme=https state_scheme=etcds
etcd_options=(--cert-file "$tmp/server.pem" --key-file "$tmp/server.key"
	--trusted-ca-file "$tmp/ours.pem" --client-cert-auth)
start_etcd
known=("WEFT_ETCD_CERT=$tmp/member.pem" "WEFT_ETCD_KEY=$tmp/member.key")
all=("WEFT_ETCD_CA=$tmp/ours.pem" "${known[@]}")
at=etcds://$etcd/jobs/x

ok "without our certificate: etcd refuses, and that is said" \
	refused 'TLS: .*certificate' "WEFT_ETCD_CA=$tmp/ours.pem" "$at"
ok "another authority" \
	refused 'its certificate is not accepted: .*self.signed\|its certificate is not accepted: .*issuer' "WEFT_ETCD_CA=$tmp/other.pem" "${known[@]}" "$at"
ok "none that the system knows" refused 'its certificate is not accepted' \
	"${known[@]}" "$at"
ok "the name of another host" refused 'its certificate is not accepted: hostname mismatch' "${all[@]}" "etcds://localhost:${etcd##*:}/jobs/x"
ok "in clear" refused "etcd at $etcd: " "etcd://$etcd/jobs/x"
ok "a file that is not there" refused "$tmp/none is no file of authorities' certificates" "${all[@]}" "WEFT_ETCD_CA=$tmp/none" "$at"
ok "a certificate that is none" refused "server.key is no file of certificates" "${all[@]}" "WEFT_ETCD_CERT=$tmp/server.key" "$at"
ok "the key of another certificate" refused "server.key is no file of the certificate's key" "${all[@]}" "WEFT_ETCD_KEY=$tmp/server.key" "$at"
ok "a certificate without a key" refused 'there is a certificate and no key' "${all[@]}" WEFT_ETCD_KEY= "$at"

# stranger: a server at $port that speaks TLS with the certificate that has expired.
stranger() {
	for _ in {1..20}; do
		port=$(free_port)
		openssl s_server -www -accept "127.0.0.1:$port" -cert "$tmp/expired.pem" \
			-key "$tmp/expired.key" >"$tmp/stranger" 2>&1 </dev/null &
		pids+=($!)
		has "$tmp/stranger" '^ACCEPT' && return
	done
	bail "openssl s_server does not run: $(<"$tmp/stranger")"
}
stranger
ok "a certificate that has expired" \
	refused 'its certificate is not accepted: certificate has expired' "${all[@]}" "etcds://127.0.0.1:$port/x"

export "${all[@]}"
name0=one
port_a=$(free_port)
port_b=$(free_port)
start a "$port_a" --first
a=$coord
ok "with all of them a coordinator leads" has "$tmp/a" "^127.0.0.1:$port_a\$"
start b "$port_b"
ok "another waits, and says for whom" has "$tmp/b.err" "listens at 127.0.0.1:$port_a leads"
for i in 1 2; do
	"$member" "127.0.0.1:$port_a,127.0.0.1:$port_b" 100000000 >"$tmp/m$i" 2>&1 &
	pids+=($!)
done
ok "members run steps" has "$tmp/m1" '^step 10 of 2'
kill -9 "$a"
wait "$a" 2>/dev/null
ok "the other takes over" has "$tmp/b" "^127.0.0.1:$port_b\$"
ok "and the steps go on" has "$tmp/m1" '^step .* of 2' $(($(grep -c '^step' "$tmp/m1") + 10))

done_testing
