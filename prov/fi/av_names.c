/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vector: inserting by name, and addresses as text. */
#include "config.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/fi/addr_resolve.h"
#include "prov/fi/av_int.h"
#include "prov/mem/params.h"

/* The longest host name, and room for a number that grew. */
#define NODE_TEXT_MAX (NI_MAXHOST + 24)
#define SYM_MAX	      (1u << 20)

static sa_family_t av_family(const struct wfi_av *av)
{
	return av->domain->addr_format == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET;
}

/* 0, or an errno > 0. */
static int name_resolve(const struct wfi_av *av, const char *node, const char *service,
			struct wire_addr *out)
{
	struct wire_addr found;

	if (wfi_addr_resolve(node, service, 0, av_family(av), &found))
		return FI_ENODATA;
	if (!wire_addr_from_sockaddr(out, &found.sa, wire_addr_len(&found)))
		return FI_EINVAL;
	return 0;
}

/* Looking a name up can take seconds: the lock is not held meanwhile. */
static void batch_resolve(struct wfi_av_batch *b, const char *node, const char *service)
{
	struct wire_addr addr;
	int err = name_resolve(b->av, node, service, &addr);

	wfi_domain_lock(b->av->domain);
	wfi_av_batch_add(b, err ? NULL : &addr, err);
	wfi_domain_unlock(b->av->domain);
}

int wfi_av_insertsvc(struct fid_av *fid, const char *node, const char *service,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct wfi_av_batch batch;
	int rc;

	if (!node || !service) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"insertsvc: both a node and a service are needed\n");
		return -FI_EINVAL;
	}
	rc = wfi_av_batch_begin(&batch, (struct wfi_av *)fid, fi_addr, flags, context);
	if (rc)
		return rc;
	batch_resolve(&batch, node, service);
	return wfi_av_batch_end(&batch);
}

/* ---- symmetric names
 * ------------------------------------------------------------------- */

/* node + i: an address counts up as the number that it is, a name by the digits that end
 * it (node07, node08, ...). False when there is no such name. */
static bool node_step(const char *node, size_t i, char out[NODE_TEXT_MAX])
{
	struct in_addr in;
	struct in6_addr in6;
	size_t len = strlen(node), digits = 0;
	unsigned long long number;

	if (inet_pton(AF_INET, node, &in) == 1) {
		in.s_addr = htonl(ntohl(in.s_addr) + (uint32_t)i);
		return inet_ntop(AF_INET, &in, out, NODE_TEXT_MAX);
	}
	if (inet_pton(AF_INET6, node, &in6) == 1) {
		uint64_t sum = i;

		for (int byte = 15; byte >= 0; byte--) {
			sum += in6.s6_addr[byte];
			in6.s6_addr[byte] = (uint8_t)sum;
			sum >>= 8;
		}
		return inet_ntop(AF_INET6, &in6, out, NODE_TEXT_MAX);
	}
	if (len >= NI_MAXHOST)
		return false;
	while (digits < len && digits < 18 &&
	       isdigit((unsigned char)node[len - 1 - digits]))
		digits++;
	if (!digits && i)
		return false;
	if (!digits) {
		memcpy(out, node, len + 1);
		return true;
	}
	number = strtoull(node + len - digits, NULL, 10) + i;
	snprintf(out, NODE_TEXT_MAX, "%.*s%0*llu", (int)(len - digits), node, (int)digits,
		 number);
	return true;
}

static bool service_number(const char *service, unsigned long *port)
{
	char *end;

	if (!isdigit((unsigned char)service[0]))
		return false;
	*port = strtoul(service, &end, 10);
	return !*end && *port > 0 && *port <= UINT16_MAX;
}

int wfi_av_insertsym(struct fid_av *fid, const char *node, size_t nodecnt,
		     const char *service, size_t svccnt, fi_addr_t *fi_addr,
		     uint64_t flags, void *context)
{
	struct wfi_av_batch batch;
	unsigned long port;
	int rc;

	if (!node || !service || !service_number(service, &port)) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"insertsym: a node and a port number are needed\n");
		return -FI_EINVAL;
	}
	if (nodecnt > SYM_MAX || svccnt > UINT16_MAX || nodecnt * svccnt > INT_MAX)
		return -FI_EINVAL;
	rc = wfi_av_batch_begin(&batch, (struct wfi_av *)fid, fi_addr, flags, context);
	if (rc)
		return rc;
	for (size_t n = 0; n < nodecnt; n++) {
		char name[NODE_TEXT_MAX];
		bool good = node_step(node, n, name);

		for (size_t s = 0; s < svccnt; s++) {
			char text[16];

			snprintf(text, sizeof(text), "%zu", (size_t)port + s);
			/* A port past the last one doesn't resolve. */
			batch_resolve(&batch, good ? name : "", text);
		}
	}
	return wfi_av_batch_end(&batch);
}

/* ---- text
 * ------------------------------------------------------------------------------ */

const char *wfi_av_straddr(struct fid_av *fid, const void *addr, char *buf, size_t *len)
{
	char host[INET6_ADDRSTRLEN] = "?", text[96];
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	sa_family_t family;
	int need;

	(void)fid;
	memcpy(&family, addr, sizeof(family));
	if (family == AF_INET6) {
		memcpy(&in6, addr, sizeof(in6));
		inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
		need = snprintf(text, sizeof(text), "fi_sockaddr_in6://[%s]:%u", host,
				ntohs(in6.sin6_port));
	} else if (family == AF_INET) {
		memcpy(&in, addr, sizeof(in));
		inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
		need = snprintf(text, sizeof(text), "fi_sockaddr_in://%s:%u", host,
				ntohs(in.sin_port));
	} else {
		need = snprintf(text, sizeof(text), "family %u: no IPv4 or IPv6 address",
				family);
	}
	snprintf(buf, *len, "%s", text);
	*len = (size_t)need + 1;
	return buf;
}
