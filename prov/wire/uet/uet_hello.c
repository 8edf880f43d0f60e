/* SPDX-License-Identifier: BSD-2-Clause */
/* How a link begins and ends; see uet_hello.h. */
#include "config.h"

#include "prov/wire/uet/uet_hello.h"

#include <string.h>

#define ERR_MAX	   4095
#define PACKET_MIN 4096u
#define PACKET_MAX (1u << 20)

void uet_hello_put(struct uet_hello_bytes *to, const struct uet_hello *hello)
{
	*to = (struct uet_hello_bytes){
		.magic = be32_of(UET_HELLO_MAGIC),
		.version = UET_HELLO_VERSION,
		.kind = hello->kind,
		.err = be16_of(hello->err),
		.incarnation = be64_of(hello->incarnation),
		.to = be64_of(hello->to),
		.part = be32_of(hello->part),
		.packet = be32_of(hello->packet),
	};
}

static bool sizes_fit(const struct uet_hello *h)
{
	if (h->kind != UET_SAID_HELLO && h->kind != UET_SAID_ANSWER)
		return h->part == 0 && h->packet == 0;
	return h->part >= UET_PART_MIN && h->part <= UET_PART_MAX &&
	       h->packet >= PACKET_MIN && h->packet <= PACKET_MAX;
}

bool uet_hello_parse(const void *bytes, size_t len, struct uet_hello *hello)
{
	struct uet_hello_bytes b;

	if (len != sizeof(b))
		return false;
	memcpy(&b, bytes, sizeof(b));
	*hello = (struct uet_hello){
		.kind = b.kind,
		.err = be16_get(b.err),
		.incarnation = be64_get(b.incarnation),
		.to = be64_get(b.to),
		.part = be32_get(b.part),
		.packet = be32_get(b.packet),
	};
	return be32_get(b.magic) == UET_HELLO_MAGIC && b.version == UET_HELLO_VERSION &&
	       b.kind >= UET_SAID_HELLO && b.kind < UET_SAID_KINDS &&
	       hello->incarnation != 0 &&
	       (hello->to == 0) == (b.kind == UET_SAID_HELLO) && sizes_fit(hello) &&
	       (b.kind == UET_SAID_REFUSE ? hello->err >= 1 && hello->err <= ERR_MAX
					  : hello->err == 0);
}
