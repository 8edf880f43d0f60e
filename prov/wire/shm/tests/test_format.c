/* SPDX-License-Identifier: BSD-2-Clause */
/* The handshake's bytes: golden, and any other. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/mem/memfd.h"
#include "prov/wire/shm/shm_bulk.h"
#include "prov/wire/shm/shm_format.h"
#include "prov/wire/shm/shm_handshake.h"
#include "prov/wire/shm/shm_hub.h"
#include "util/tap.h"

static struct wire_addr address(void)
{
	struct wire_addr a;

	memset(&a, 0, sizeof(a));
	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(9228);
	inet_pton(AF_INET, "127.0.0.1", &a.in.sin_addr);
	return a;
}

static struct shm_hello sample(enum shm_hello_kind kind)
{
	struct wire_addr a = address();
	struct shm_hello h;

	shm_hello_init(&h, kind, &a);
	h.incarnation = UINT64_C(0x1122334455667788);
	h.cookie_addr = UINT64_C(0x00007fffdeadbee0);
	h.cookie[0] = UINT64_C(0x0102030405060708);
	h.cookie[1] = UINT64_C(0x1112131415161718);
	h.hub_bit = 300;
	h.bulk_size = SHM_BULK_SIZE;
	return h;
}

/* A process built from other sources of the same version must still understand us. */
static void test_golden(void)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	static const uint8_t golden[80] = {
		0x31, 0x74, 0x66, 0x77, 0x04, 0x00, 0x01, 0x00, 0x50, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
		0xe0, 0xbe, 0xad, 0xde, 0xff, 0x7f, 0x00, 0x00, 0x08, 0x07, 0x06, 0x05,
		0x04, 0x03, 0x02, 0x01, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,
		0x2c, 0x01, 0x00, 0x00, 0x00, 0x30, 0x0a, 0x00, 0x02, 0x00, 0x24, 0x0c,
		0x7f, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
		0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x3e, 0x00,
	};
	struct shm_hello h = sample(SHM_HELLO);

	tap_is_mem(&h, golden, sizeof(golden), "golden bytes of a hello");
#else
	tap_skip(1, "the golden bytes are little endian");
#endif
	tap_is_int(offsetof(struct shm_pair_mem, ring), 4096, "rings begin at a page");
	tap_is_int(offsetof(struct shm_pair_mem, service), 4096 + 2 * 65536,
		   "the service areas after them");
	tap_is_int(sizeof(struct shm_pair_mem), 0xa3000, "size of a link's memory");
}

static int parse(const void *bytes, size_t len, enum shm_hello_kind kind)
{
	struct wire_addr addr;
	struct shm_hello out;

	return shm_hello_parse(bytes, len, kind, &out, &addr);
}

static int parse_context(const struct shm_hello *h)
{
	struct wire_addr addr = {0};
	struct shm_hello out;

	return shm_hello_parse(h, sizeof(*h), SHM_HELLO, &out, &addr) ? -1 : addr.context;
}

static void test_fields(void)
{
	struct shm_hello h = sample(SHM_HELLO), bad;

	tap_is_int(parse(&h, sizeof(h), SHM_HELLO), 0, "a good hello");
	tap_is_int(parse(&h, sizeof(h) - 1, SHM_HELLO), -FI_EINVAL, "short");
	tap_is_int(parse(&h, sizeof(h) + 1, SHM_HELLO), -FI_EINVAL, "long");
	tap_is_int(parse(&h, 0, SHM_HELLO), -FI_EINVAL, "nothing");
	tap_is_int(parse(&h, sizeof(h), SHM_ANSWER), -FI_EINVAL, "not an answer");
	bad = h;
	bad.version++;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "another version");
	bad = h;
	bad.incarnation = 0;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "no incarnation");
	bad = h;
	bad.hub_bit = SHM_HUB_BITS;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "a bit that isn't");
	bad = h;
	bad.context = 7;
	tap_is_int(parse_context(&bad), 7, "a context is part of the address");
	bad = h;
	bad.addr.family = AF_UNIX;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "another family");
	bad = h;
	bad.addr.port = 0;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "no port");
	bad = h;
	bad.bulk_size = 4096;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL,
		   "bulk slots of another size");
	bad.bulk_size = 0;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), 0, "no bulk slots");
	bad = h;
	bad.status = -1;
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "a status");
	bad = sample(SHM_REFUSAL);
	tap_is_int(parse(&bad, sizeof(h), SHM_ANSWER), -FI_EINVAL, "refused without why");
	bad.status = -FI_EACCES;
	tap_is_int(parse(&bad, sizeof(h), SHM_ANSWER), 0, "a refusal is an answer");
	tap_is_int(parse(&bad, sizeof(h), SHM_HELLO), -FI_EINVAL, "but no hello");
	bad.status = 5;
	tap_is_int(parse(&bad, sizeof(h), SHM_ANSWER), -FI_EINVAL, "a status above 0");
}

/* Any mutation is either refused or leaves every field in range. */
static void test_mutation(uint64_t seed)
{
	int wrong = 0, accepted = 0;

	srandom((unsigned)seed);
	for (int i = 0; i < 200000; i++) {
		struct shm_hello h = sample(random() % 2 ? SHM_HELLO : SHM_ANSWER), out;
		uint8_t bytes[sizeof(h)];
		struct wire_addr addr;

		memcpy(bytes, &h, sizeof(h));
		for (long n = random() % 4; n >= 0; n--)
			bytes[(size_t)random() % sizeof(h)] ^=
				(uint8_t)(1 << random() % 8);
		if (shm_hello_parse(bytes, sizeof(h), SHM_HELLO, &out, &addr))
			continue;
		accepted++;
		wrong += out.magic != SHM_MAGIC || out.version != SHM_VERSION ||
			 out.kind != SHM_HELLO || out.hub_bit >= SHM_HUB_BITS ||
			 out.incarnation == 0 || out.pair_size != SHM_PAIR_SIZE ||
			 (addr.sa.sa_family != AF_INET && addr.sa.sa_family != AF_INET6);
	}
	tap_ok(accepted > 1000, "some mutations are harmless");
	tap_is_int(wrong, 0, "no other gets through");
}

/* ---- with descriptors
 * ------------------------------------------------------------------ */

struct kit {
	int sock[2];
	struct mem_keytab *keys;
	struct shm_hub hub;
	int pair_fd;
	void *pair;
	struct shm_bulk bulk;
	int fds[SHM_FD_COUNT];
};

static void kit_open(struct kit *k)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k->sock) < 0 ||
	    mem_keytab_open(64, &k->keys) || shm_hub_init(&k->hub) ||
	    mem_memfd_create("pair", SHM_PAIR_SIZE, &k->pair_fd, &k->pair))
		tap_bail("kit");
	k->fds[SHM_FD_KEYS] = mem_keytab_fd(k->keys);
	k->fds[SHM_FD_HUB] = k->hub.mem_fd;
	k->fds[SHM_FD_WAKE] = k->hub.wake_tx;
	k->fds[SHM_FD_PAIR] = k->pair_fd;
	shm_bulk_init(&k->bulk);
	k->fds[SHM_FD_BULK] = k->bulk.fd;
}

static void kit_close(struct kit *k)
{
	close(k->sock[0]);
	close(k->sock[1]);
	mem_keytab_close(k->keys);
	shm_hub_fini(&k->hub);
	shm_bulk_fini(&k->bulk);
	munmap(k->pair, SHM_PAIR_SIZE);
	close(k->pair_fd);
}

/* Sends a hello with these descriptors; how far does it come? */
static int deliver(struct kit *k, const int *fds)
{
	struct shm_hello h = sample(SHM_HELLO);
	struct shm_peer_memory mem;
	struct shm_parcel parcel;
	int ret;

	if (shm_parcel_send(k->sock[0], &h, fds))
		return 1;
	ret = shm_parcel_recv(k->sock[1], SHM_HELLO, &parcel);
	if (ret)
		return ret;
	ret = shm_parcel_map(&parcel, &mem);
	if (ret == 0)
		shm_peer_memory_drop(&mem);
	return ret;
}

static int fd_count(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_descriptors(void)
{
	int fds[SHM_FD_COUNT], unsealed, event, before, pipes[2];
	struct shm_hello h = sample(SHM_HELLO);
	struct shm_parcel parcel;
	struct kit k;

	kit_open(&k);
	unsealed = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	event = eventfd(0, EFD_CLOEXEC);
	if (ftruncate(unsealed, SHM_PAIR_SIZE) < 0 || event < 0 || pipe(pipes) < 0)
		tap_bail("descriptors");
	before = fd_count();
	tap_is_int(deliver(&k, k.fds), 0, "good descriptors");
	memcpy(fds, k.fds, sizeof(fds));
	fds[SHM_FD_PAIR] = unsealed;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "pair memory that isn't sealed");
	fds[SHM_FD_PAIR] = k.hub.mem_fd;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "pair memory of another size");
	fds[SHM_FD_PAIR] = k.pair_fd;
	fds[SHM_FD_HUB] = pipes[0];
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "a pipe for a hub");
	fds[SHM_FD_HUB] = mem_keytab_fd(k.keys);
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "a key table for a hub");
	fds[SHM_FD_HUB] = k.hub.mem_fd;
	fds[SHM_FD_KEYS] = k.pair_fd;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "pair memory for a key table");
	fds[SHM_FD_KEYS] = k.fds[SHM_FD_KEYS];
	fds[SHM_FD_WAKE] = event;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "an eventfd to wake by");
	fds[SHM_FD_WAKE] = k.sock[0];
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "a socket that isn't for datagrams");
	fds[SHM_FD_WAKE] = k.fds[SHM_FD_WAKE];
	fds[SHM_FD_BULK] = k.pair_fd;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "pair memory for bulk slots");
	fds[SHM_FD_BULK] = unsealed;
	tap_is_int(deliver(&k, fds), -FI_EINVAL, "bulk slots that aren't sealed");
	(void)!send(k.sock[0], &h, sizeof(h), 0);
	tap_is_int(shm_parcel_recv(k.sock[1], SHM_HELLO, &parcel), -FI_EINVAL,
		   "a hello without descriptors");
	(void)!send(k.sock[0], "hello", 5, 0);
	tap_is_int(shm_parcel_recv(k.sock[1], SHM_HELLO, &parcel), -FI_EINVAL,
		   "something else");
	tap_is_int(shm_parcel_recv(k.sock[1], SHM_HELLO, &parcel), -FI_EAGAIN,
		   "nothing yet");
	h = sample(SHM_ANSWER);
	shm_parcel_send(k.sock[0], &h, k.fds);
	tap_is_int(shm_parcel_recv(k.sock[1], SHM_HELLO, &parcel), -FI_EINVAL,
		   "an answer where a hello should be");
	tap_is_int(fd_count(), before, "no descriptor stays behind");
	close(k.sock[0]);
	tap_is_int(shm_parcel_recv(k.sock[1], SHM_HELLO, &parcel), -FI_ECONNRESET,
		   "nobody there");
	k.sock[0] = -1;
	close(unsealed);
	close(event);
	close(pipes[0]);
	close(pipes[1]);
	kit_close(&k);
}

int main(void)
{
	const char *env = getenv("WEFT_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL);

	alarm(280);
	tap_diag("WEFT_TEST_SEED=%" PRIu64, seed);
	test_golden();
	test_fields();
	test_mutation(seed);
	test_descriptors();
	return tap_done();
}
