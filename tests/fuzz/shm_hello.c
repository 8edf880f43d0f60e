/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake of the shared-memory wire, as a stranger at the door may forge it: what
 * shm_hello_parse accepts is of the kind that was expected, and says so without doubt.
 */
#include "config.h"

#include <arpa/inet.h>
#include <string.h>

#include "prov/wire/shm/shm_format.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_one(const uint8_t *data, size_t size)
{
	bool accepted = false;

	for (int kind = SHM_HELLO; kind <= SHM_ANSWER; kind++) {
		struct shm_hello hello;
		struct wire_addr addr;

		if (shm_hello_parse(data, size, (enum shm_hello_kind)kind, &hello, &addr))
			continue;
		accepted = true;
		fuzz_require(size == sizeof(hello));
		fuzz_require(memcmp(data, &hello, sizeof(hello)) == 0);
		fuzz_require(addr.sa.sa_family == AF_INET ||
			     addr.sa.sa_family == AF_INET6);
		if (hello.kind == SHM_REFUSAL)
			fuzz_require(kind == SHM_ANSWER && hello.status < 0);
		else
			fuzz_require(hello.kind == kind && hello.status == 0);
	}
	return accepted;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	struct wire_addr addr = {.in = {.sin_family = AF_INET, .sin_port = htons(9228)}};
	struct shm_hello hello;

	if (number > 3)
		return 0;
	if (number == 3) {
		addr.in6 = (struct sockaddr_in6){.sin6_family = AF_INET6,
						 .sin6_port = htons(9228)};
		addr.in6.sin6_addr.s6_addr[15] = 1;
	} else {
		addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	shm_hello_init(&hello,
		       number == 3 ? SHM_HELLO : (enum shm_hello_kind)(number + 1),
		       &addr);
	hello.incarnation = 1;
	if (hello.kind == SHM_REFUSAL)
		hello.status = -13;
	memcpy(room, &hello, sizeof(hello));
	return sizeof(hello);
}
