/* SPDX-License-Identifier: BSD-2-Clause */
/* How a link begins and ends; see uet_hello.h. */
#include "config.h"

#include "prov/wire/uet/uet_hello.h"

#include <string.h>

#define ERR_MAX	   4095
#define PACKET_MIN 4096u
#define PACKET_MAX (1u << 20)
#define IP4_MANY   224u /* from this first byte on: not one host's */
#define IP6_MANY   0xffu

size_t uet_hello_put(void *to, const struct uet_hello *hello)
{
	struct uet_hello_bytes b = {
		.magic = be32_of(UET_HELLO_MAGIC),
		.version = UET_HELLO_VERSION,
		.kind = hello->kind,
		.err = be16_of(hello->bare ? UET_HELLO_BARE : hello->err),
		.incarnation = be64_of(hello->incarnation),
		.to = be64_of(hello->to),
		.part = be32_of(hello->part),
		.packet = be32_of(hello->packet),
	};
	size_t rails = hello->rails * sizeof(hello->rail[0]);

	memcpy(to, &b, sizeof(b));
	memcpy((uint8_t *)to + sizeof(b), hello->rail, rails);
	return sizeof(b) + rails;
}

static bool is_ip4(const struct uet_host_bytes *h)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(h->bytes, mapped, sizeof(mapped)) == 0;
}

/* Of one host: not nobody's, and not that of many. */
static bool is_host(const struct uet_host_bytes *h)
{
	static const struct uet_host_bytes none;

	if (is_ip4(h))
		return h->bytes[12] != 0 && h->bytes[12] < IP4_MANY;
	return memcmp(h, &none, sizeof(none)) != 0 && h->bytes[0] != IP6_MANY;
}

static bool rails_fit(const struct uet_hello *h)
{
	for (uint32_t i = 0; i < h->rails; i++) {
		if (!is_host(&h->rail[i]) || is_ip4(&h->rail[i]) != is_ip4(&h->rail[0]))
			return false;
		for (uint32_t j = 0; j < i; j++) {
			if (memcmp(&h->rail[i], &h->rail[j], sizeof(h->rail[i])) == 0)
				return false;
		}
	}
	return true;
}

static bool begins(uint8_t kind)
{
	return kind == UET_SAID_HELLO || kind == UET_SAID_ANSWER;
}

static bool sizes_fit(const struct uet_hello *h)
{
	if (!begins(h->kind))
		return h->part == 0 && h->packet == 0 && h->rails == 0;
	return rails_fit(h) && h->part >= UET_PART_MIN && h->part <= UET_PART_MAX &&
	       h->packet >= PACKET_MIN && h->packet <= PACKET_MAX;
}

bool uet_hello_parse(const void *bytes, size_t len, struct uet_hello *hello)
{
	struct uet_hello_bytes b;
	size_t more = len - sizeof(b);

	if (len < sizeof(b) || len > UET_HELLO_MAX || more % sizeof(hello->rail[0]))
		return false;
	memcpy(&b, bytes, sizeof(b));
	*hello = (struct uet_hello){
		.kind = b.kind,
		.err = be16_get(b.err),
		.incarnation = be64_get(b.incarnation),
		.to = be64_get(b.to),
		.part = be32_get(b.part),
		.packet = be32_get(b.packet),
		.rails = (uint32_t)(more / sizeof(hello->rail[0])),
	};
	memcpy(hello->rail, (const uint8_t *)bytes + sizeof(b), more);
	if (begins(b.kind) && hello->err == UET_HELLO_BARE) {
		hello->bare = true;
		hello->err = 0;
	}
	return be32_get(b.magic) == UET_HELLO_MAGIC && b.version == UET_HELLO_VERSION &&
	       b.kind >= UET_SAID_HELLO && b.kind < UET_SAID_KINDS &&
	       hello->incarnation != 0 &&
	       (hello->to == 0) == (b.kind == UET_SAID_HELLO) && sizes_fit(hello) &&
	       (b.kind == UET_SAID_REFUSE ? hello->err >= 1 && hello->err <= ERR_MAX
					  : hello->err == 0);
}
