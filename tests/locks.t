#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Clang's thread-safety analysis finds what it is there for: with the notes of
# util/lock_note.h, a call without the lock that it needs, one with a lock that it must not
# have, and a lock that stays taken. (That the libraries are free of these is make lint's
# part.)
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/tap.sh" || exit 99

command -v clang >/dev/null || skip_all "clang is not installed"

# analysed BODY: a function of the provider with that body.
analysed() {
	{
		printf '#include "config.h"\n'
		printf '#include "%s"\n' prov/fi/cq.h prov/fi/domain.h prov/fi/progress.h \
			prov/fi/wait.h prov/proto/engine.h prov/wire/shm/shm_ep.h \
			prov/wire/shm/shm_link.h coll/comm/comm.h
		printf 'void planted(struct wfi_domain *d, struct wfi_cq *cq, struct shm_ep *ep,\n'
		printf '\t     struct shm_link *link, struct proto_ep *proto,\n'
		printf '\t     struct wfi_progress *progress, struct weft_ctx *ctx);\n'
		printf 'void planted(struct wfi_domain *d, struct wfi_cq *cq, struct shm_ep *ep,\n'
		printf '\t     struct shm_link *link, struct proto_ep *proto,\n'
		printf '\t     struct wfi_progress *progress, struct weft_ctx *ctx)\n'
		printf '{\n\t(void)d, (void)cq, (void)ep, (void)link, (void)proto;\n'
		printf '\t(void)progress, (void)ctx;\n\t%s\n}\n' "$1"
	} >"$tmp/planted.c"
	# shellcheck disable=SC2046 # a list of flags
	clang -fsyntax-only -std=gnu11 -Wall -Wextra -Werror -Wthread-safety -I"$top" \
		-I"$top/include" -I"$build" $(pkg-config --cflags libfabric) \
		"$tmp/planted.c" >"$tmp/out" 2>&1
}

good() {
	ok "accepted: $1" analysed "$2" || diag "$(head -n 5 "$tmp/out")"
}

# found WORDS BODY SENTENCE
found() {
	if analysed "$2"; then
		ok "found: $1" false
	else
		ok "found: $1" grep -q -- "$3" "$tmp/out" || diag "$(head -n 5 "$tmp/out")"
	fi
}

good "nothing" ""
good "with the lock" 'wfi_domain_lock(d); wfi_cq_hold(cq, true); wfi_domain_unlock(d);'
found "a queue without the domain's lock" 'wfi_cq_hold(cq, true);' \
	"calling function 'wfi_cq_hold' requires holding lock 'lock_domain'"
found "after it was given back" \
	'wfi_domain_lock(d); wfi_domain_unlock(d); wfi_cq_hold(cq, true);' \
	"calling function 'wfi_cq_hold' requires holding lock 'lock_domain'"
found "on one of two ways" 'if (progress) wfi_domain_lock(d); wfi_cq_hold(cq, true);' \
	"lock_domain"
found "a lock that stays taken" 'wfi_domain_lock(d);' "lock_domain' is still held"
found "a lock taken twice" \
	'wfi_domain_lock(d); wfi_domain_lock(d); wfi_domain_unlock(d);' \
	"acquiring lock 'lock_domain' that is already held"
found "one that must not be held" \
	'wfi_domain_lock(d); wfi_progress_close(progress); wfi_domain_unlock(d);' \
	"cannot call function 'wfi_progress_close' while lock 'lock_domain' is held"
found "the engine without it" 'proto_progress(proto);' "lock_domain"
found "the wire's, where the domain's is held" \
	'wfi_domain_lock(d); shm_link_free(link); wfi_domain_unlock(d);' "lock_wire"
good "the wire's" 'shm_ep_lock(ep); shm_link_free(link); shm_ep_unlock(ep);'
found "a context's" 'exec_progress(ctx->exec);' "lock_context"
good "a context's" 'ctx_lock(ctx); exec_progress(ctx->exec); ctx_unlock(ctx);'

done_testing
