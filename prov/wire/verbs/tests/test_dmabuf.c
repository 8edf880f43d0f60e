/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions that a file descriptor stands for, over whatever libibverbs is found (dmabuf.t
 * runs it over emulated devices, which take any that can be mapped). DMABUF_WANT: taken,
 * where all devices register by the descriptor: then the region may be said to be
 * where nothing of it is mapped; else none: then the mapping is registered. Rules D1, D2.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/rig.h"
#include "prov/wire/verbs/verbs.h"
#include "util/tap.h"

#define PAGE   ((size_t)4096)
#define SKIP   (3 * PAGE + 512) /* where in the file the region begins */
#define LEN    ((size_t)1 << 20)
#define WHOLE  (SKIP + LEN + PAGE)
#define MOVES  600000u
#define OFFSET 777u

struct ends {
	struct rig a;
	struct rig b;
	int fd;
	uint8_t *seen;	  /* the file, for the test to look at */
	uint8_t *mapped;  /* likewise, for the region */
	uint8_t *nowhere; /* memory that can't be written, of that length */
	uint8_t *from;
	void *handle;
};

static void ends_open(struct ends *e)
{
	rig_open(&e->a);
	rig_open(&e->b);
	e->fd = memfd_create("dmabuf", MFD_CLOEXEC);
	if (e->fd < 0 || ftruncate(e->fd, WHOLE))
		tap_bail("no memory by descriptor");
	e->seen = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	e->mapped = mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
	e->nowhere = mmap(NULL, WHOLE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (e->seen == MAP_FAILED || e->mapped == MAP_FAILED || e->nowhere == MAP_FAILED)
		tap_bail("no memory");
	e->from = rig_memory(&e->a, MOVES, &e->handle);
	if (rig_dial(&e->a, &wire_ep_base(e->b.ep)->addr))
		tap_bail("dial: %d, down %d", e->a.downs, e->a.down_err);
}

/* The region of the file's bytes from SKIP on, said to be at `base` + SKIP. */
static int region_add(struct ends *e, uint8_t *base, int fd, uint64_t offset,
		      uint64_t *key)
{
	const struct mem_dmabuf dmabuf = {.fd = fd, .offset = offset};
	struct mem_region region = {.iov_count = 1,
				    .access = FI_REMOTE_READ | FI_REMOTE_WRITE,
				    .virt_addr = true,
				    .dmabuf = &dmabuf};
	int ret;

	region.iov[0] = (struct iovec){base + SKIP, LEN};
	ret = mem_keytab_insert(e->b.keys, &region, key);
	if (ret)
		tap_bail("no key");
	ret = verbs_wire_ops.key_add(e->b.ep, *key, &region);
	if (ret)
		mem_keytab_remove(e->b.keys, *key);
	return ret;
}

static int move(struct ends *e, bool write, const uint8_t *base, uint64_t key)
{
	return rig_move(&e->a, e->a.dialled, write, e->from, e->handle, MOVES,
			(uintptr_t)base + SKIP + OFFSET, key);
}

static bool goes(struct ends *e, const uint8_t *base, uint64_t key, unsigned seed)
{
	const uint8_t *at = e->seen + SKIP + OFFSET;
	int wrong = 0;

	for (size_t i = 0; i < MOVES; i++)
		e->from[i] = (uint8_t)(i * 11 + (i >> 8) + seed);
	if (move(e, true, base, key) || memcmp(at, e->from, MOVES) || at[MOVES] || at[-1])
		return false;
	memset(e->from, 0, MOVES);
	if (move(e, false, base, key))
		return false;
	for (size_t i = 0; i < MOVES; i++)
		wrong += e->from[i] != (uint8_t)(i * 11 + (i >> 8) + seed);
	return wrong == 0;
}

static void test_region(struct ends *e, bool taken)
{
	uint64_t key = 0, second;
	int ret = region_add(e, e->nowhere, e->fd, SKIP, &key);

	if (taken)
		tap_ok(ret == 0 && goes(e, e->nowhere, key, 1),
		       "memory by its descriptor, said to be where it isn't mapped");
	else
		tap_is_int(ret, -FI_EFAULT,
			   "without one that takes it, it must be mapped");
	tap_ok(region_add(e, e->mapped, e->fd, SKIP, &second) == 0 &&
		       goes(e, e->mapped, second, 2),
	       "mapped memory by its descriptor");
	rig_unregister(&e->b, second);
	tap_ok(move(e, true, e->mapped, second) != 0,
	       "D2: a key that was closed is refused");
	if (taken) {
		tap_ok(goes(e, e->nowhere, key, 3), "D2: and no other");
		rig_unregister(&e->b, key);
	}
}

static void test_wrong(struct ends *e)
{
	int ends[2];
	uint64_t key;

	if (pipe(ends))
		tap_bail("no pipe");
	tap_is_int(region_add(e, e->mapped, ends[0], 0, &key), -FI_EINVAL,
		   "a descriptor of no memory");
	close(ends[0]);
	close(ends[1]);
	tap_is_int(region_add(e, e->mapped, e->fd, SKIP + 2 * PAGE, &key), -FI_EINVAL,
		   "more than it has");
}

int main(void)
{
	const char *want = getenv("DMABUF_WANT");
	bool taken = want && strcmp(want, "taken") == 0;
	struct ends e;

	ends_open(&e);
	test_region(&e, taken);
	if (taken)
		test_wrong(&e);
	tap_is_int(e.a.downs + e.b.downs, 0, "the link lives on");
	verbs_wire_ops.hangup(e.a.dialled);
	rig_close(&e.a);
	rig_close(&e.b);
	close(e.fd);
	return tap_done();
}
