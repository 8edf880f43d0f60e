/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshake's validator. */
#include "config.h"

#include "prov/wire/shm/shm_format.h"

#include <string.h>

#include <rdma/fi_errno.h>

void shm_hello_init(struct shm_hello *hello, enum shm_hello_kind kind,
		    const struct wire_addr *addr)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = SHM_MAGIC;
	hello->version = SHM_VERSION;
	hello->kind = (uint16_t)kind;
	hello->size = sizeof(*hello);
	hello->pair_size = SHM_PAIR_SIZE;
	hello->context = addr->context;
	hello->addr.family = addr->sa.sa_family;
	if (addr->sa.sa_family == AF_INET6) {
		hello->addr.port = addr->in6.sin6_port;
		memcpy(hello->addr.host, &addr->in6.sin6_addr, 16);
	} else {
		hello->addr.port = addr->in.sin_port;
		memcpy(hello->addr.host, &addr->in.sin_addr, 4);
	}
}

static int hello_addr_parse(const struct shm_hello_addr *in, struct wire_addr *out)
{
	static const uint8_t zero[12];
	struct wire_addr a;

	memset(&a, 0, sizeof(a));
	a.sa.sa_family = in->family;
	if (in->family == AF_INET) {
		a.in.sin_port = in->port;
		memcpy(&a.in.sin_addr, in->host, 4);
		if (memcmp(in->host + 4, zero, sizeof(zero)) != 0)
			return -FI_EINVAL;
	} else if (in->family == AF_INET6) {
		a.in6.sin6_port = in->port;
		memcpy(&a.in6.sin6_addr, in->host, 16);
	} else {
		return -FI_EINVAL;
	}
	return wire_addr_from_sockaddr(out, &a.sa, sizeof(a)) ? 0 : -FI_EINVAL;
}

int shm_hello_parse(const void *bytes, size_t len, enum shm_hello_kind kind,
		    struct shm_hello *hello, struct wire_addr *addr)
{
	if (len != sizeof(*hello))
		return -FI_EINVAL;
	memcpy(hello, bytes, sizeof(*hello));
	if (hello->magic != SHM_MAGIC || hello->version != SHM_VERSION ||
	    hello->size != sizeof(*hello) || hello->pair_size != SHM_PAIR_SIZE ||
	    (hello->bulk_size != 0 && hello->bulk_size != SHM_BULK_SIZE))
		return -FI_EINVAL;
	if (hello_addr_parse(&hello->addr, addr) != 0)
		return -FI_EINVAL;
	addr->context = hello->context;
	if (kind == SHM_ANSWER && hello->kind == SHM_REFUSAL)
		return hello->status < 0 && hello->status > -4096 ? 0 : -FI_EINVAL;
	if (hello->kind != kind || hello->status != 0 || hello->incarnation == 0 ||
	    hello->hub_bit >= SHM_HUB_BITS)
		return -FI_EINVAL;
	return 0;
}
