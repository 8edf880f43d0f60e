/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory for applications, reached by load and store. */
#include "config.h"

#include "prov/wire/shm/shm_share.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "prov/mem/keytab.h"
#include "prov/mem/memfd.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"

/* A question may get lost (a full socket, no descriptors): it is asked again after so
 * many more uses. */
#define SHARE_ASK_EVERY 1024

/* ---- messages -----------------------------------------------------------------------
 */

void shm_share_send(int sock, const void *msg, size_t len, int fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	(void)!sendmsg(sock, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void share_answer(struct shm_link *link, const struct shm_share_msg *ask)
{
	struct shm_share_msg give = {.kind = SHM_SHARE_GIVE, .segment = ask->segment};
	size_t size;
	int fd = -1;

	if (link->ep->arena)
		fd = mem_arena_fd(link->ep->arena, ask->segment, &size);
	if (fd >= 0)
		shm_share_send(link->sock, &give, sizeof(give), fd);
}

static void share_take(struct shm_link *link, uint32_t segment, int fd)
{
	struct shm_segment *s = &link->share.segments[segment];
	size_t size = 0;
	void *map;

	if (atomic_load_explicit(&s->map, memory_order_relaxed) ||
	    mem_memfd_map(fd, &size, true, &map))
		return;
	s->size = size;
	atomic_store_explicit(&s->map, map, memory_order_release);
}

void shm_share_message(struct shm_link *link, const struct shm_share_msg *msg, int fd)
{
	if (msg->segment < MEM_ARENA_SEGMENTS && link->keys) {
		if (msg->kind == SHM_SHARE_ASK)
			share_answer(link, msg);
		else if (msg->kind == SHM_SHARE_GIVE && fd >= 0)
			share_take(link, msg->segment, fd);
	}
	if (fd >= 0)
		close(fd);
}

void shm_share_fini(struct shm_share *share)
{
	for (int i = 0; i < MEM_ARENA_SEGMENTS; i++) {
		struct shm_segment *s = &share->segments[i];
		uint8_t *map = atomic_load_explicit(&s->map, memory_order_relaxed);

		if (map)
			munmap(map, s->size);
		atomic_store_explicit(&s->map, NULL, memory_order_relaxed);
	}
}

/* ---- load and store ------------------------------------------------------------------
 */

uint8_t *shm_share_find(struct shm_link *link, uint64_t word, size_t len)
{
	uint32_t segment = mem_share_segment(word);
	uint64_t offset = mem_share_offset(word);
	struct shm_segment *s;
	uint8_t *map;

	if (word == 0 || segment >= MEM_ARENA_SEGMENTS)
		return NULL;
	s = &link->share.segments[segment];
	map = atomic_load_explicit(&s->map, memory_order_acquire);
	if (!map) {
		struct shm_share_msg ask = {.kind = SHM_SHARE_ASK, .segment = segment};

		if (link->share.missed[segment]++ % SHARE_ASK_EVERY == 0)
			shm_share_send(link->sock, &ask, sizeof(ask), -1);
		return NULL;
	}
	return offset <= s->size && len <= s->size - offset ? map + offset : NULL;
}

void shm_share_move_short(uint8_t *shared, uint8_t *local, size_t len, bool write)
{
	uint8_t *to = write ? shared : local;
	const uint8_t *from = write ? local : shared;
	uint32_t word;
	uint16_t half;

	if (len == sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		__asm__("" : "+r"(word));
		memcpy(to, &word, sizeof(word));
	} else if (len == sizeof(half)) {
		memcpy(&half, from, sizeof(half));
		__asm__("" : "+r"(half));
		memcpy(to, &half, sizeof(half));
	} else {
		memcpy(to, from, len);
	}
}

bool shm_share_copy(struct shm_link *link, const struct mem_place *place,
		    const struct wire_segment *seg, bool write)
{
	uint8_t *at[MEM_REGION_IOV];
	size_t piece = 0, done = 0; /* of the local list; bytes of its current piece */

	for (uint32_t i = 0; i < place->count; i++) {
		at[i] = shm_share_find(link, place->share[i], place->iov[i].iov_len);
		if (!at[i])
			return false;
	}
	for (uint32_t i = 0; i < place->count; i++) {
		size_t left = place->iov[i].iov_len;

		while (left > 0 && piece < seg->local_count) {
			const struct iovec *l = &seg->local[piece];
			size_t n = l->iov_len - done < left ? l->iov_len - done : left;

			shm_share_move(at[i], (uint8_t *)l->iov_base + done, n, write);
			at[i] += n;
			left -= n;
			done += n;
			if (done == l->iov_len) {
				piece++;
				done = 0;
			}
		}
	}
	return true;
}
