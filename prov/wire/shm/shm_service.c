/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Service RMA. Chunks are numbered; chunk n uses slot n mod SHM_SERVICE_SLOTS in its turn
 * n / SHM_SERVICE_SLOTS. Each side knows exactly which state word it waits for, so that
 * nonsense in the slots only ever looks like "not yet".
 */
#include "config.h"

#include "prov/wire/shm/shm_service.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/device.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_link.h"

#define SERVICE_SEGMENTS 64 /* under way at a time */
#define SERVICE_PIECES	 16 /* of local memory per segment */

/* A segment that is under way. */
struct service_segment {
	enum shm_service_op op;
	int status; /* first failure */
	uint64_t key;
	uint64_t addr;
	size_t total; /* bytes */
	size_t len;   /* the same; less after a failure: what was asked by then */
	size_t asked; /* bytes put into slots */
	size_t done;  /* bytes answered */
	bool any;     /* a chunk was asked: tells a segment of no bytes that has begun */
	void *cookie;
	struct iovec local[SERVICE_PIECES];
	uint32_t local_count;
};

struct shm_service_tx {
	uint64_t asked;	   /* chunks */
	uint64_t answered; /* chunks */
	uint32_t first;	   /* oldest segment; a ring */
	uint32_t count;	   /* segments under way */
	uint32_t next;	   /* how many of them are asked for in full */
	struct service_segment segments[SERVICE_SEGMENTS];
};

static uint64_t slot_word(uint64_t chunk, enum shm_service_state state)
{
	return chunk / SHM_SERVICE_SLOTS * 4 + state;
}

static struct shm_service_mem *service_mine(const struct shm_link *link)
{
	return &link->pair->service[link->side];
}

static struct shm_service_mem *service_peer(const struct shm_link *link)
{
	return &link->pair->service[!link->side];
}

/* ---- initiator -----------------------------------------------------------------------
 */

/* Copies between a chunk and [offset, offset + len) of the segment's local memory. */
static void segment_copy(const struct service_segment *s, size_t offset, uint8_t *chunk,
			 size_t len, bool gather)
{
	for (uint32_t i = 0; i < s->local_count && len > 0; i++) {
		size_t room = s->local[i].iov_len, take;
		char *base = s->local[i].iov_base;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		take = room - offset < len ? room - offset : len;
		if (gather)
			memcpy(chunk, base + offset, take);
		else
			memcpy(base + offset, chunk, take);
		chunk += take;
		len -= take;
		offset = 0;
	}
}

static struct service_segment *segment_at(struct shm_service_tx *tx, uint32_t i)
{
	return &tx->segments[(tx->first + i) % SERVICE_SEGMENTS];
}

static bool segment_asked(const struct service_segment *s)
{
	return s->any && s->asked == s->len;
}

/* Puts the next chunk of s into the next slot. */
static void chunk_ask(struct shm_link *link, struct service_segment *s)
{
	struct shm_service_tx *tx = link->service_tx;
	struct shm_service_mem *mem = service_mine(link);
	unsigned index = (unsigned)(tx->asked % SHM_SERVICE_SLOTS);
	struct shm_service_slot *slot = &mem->slots[index];
	size_t len = s->len - s->asked;

	if (len > SHM_SERVICE_CHUNK)
		len = SHM_SERVICE_CHUNK;
	slot->key = s->key;
	slot->addr = s->addr;
	slot->total = s->total;
	slot->offset = s->asked;
	slot->len = (uint32_t)len;
	slot->op = s->op;
	if (s->op == SHM_SERVICE_PUT)
		segment_copy(s, s->asked, mem->chunks[index], len, true);
	/* Full barrier: either we see that the helper isn't looking, or it sees this. */
	atomic_exchange_explicit(&slot->state, slot_word(tx->asked, SHM_SLOT_ASKED),
				 memory_order_seq_cst);
	s->asked += len;
	s->any = true;
	tx->asked++;
	if (!atomic_load_explicit(&mem->attentive, memory_order_seq_cst))
		(void)!send(link->sock, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void service_push(struct shm_link *link)
{
	struct shm_service_tx *tx = link->service_tx;

	while (tx->next < tx->count && tx->asked - tx->answered < SHM_SERVICE_SLOTS) {
		struct service_segment *s = segment_at(tx, tx->next);

		chunk_ask(link, s);
		if (segment_asked(s))
			tx->next++;
	}
}

static uint64_t op_access(enum shm_service_op op)
{
	return op == SHM_SERVICE_PUT ? FI_REMOTE_WRITE : FI_REMOTE_READ;
}

static int segment_check(const struct shm_link *link, const struct wire_segment *seg,
			 enum shm_service_op op)
{
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, incarnation;

	return mem_keyview_find(link->keys, seg->remote.key, seg->remote.addr, seg->len,
				op_access(op), iov, &count, &incarnation);
}

int shm_service_ask(struct shm_link *link, const struct wire_segment *seg,
		    enum shm_service_op op)
{
	struct shm_service_tx *tx = link->service_tx;
	struct service_segment *s;
	int ret;

	/* The target checks again; this way a refusal comes at once, as with attach. */
	ret = segment_check(link, seg, op);
	if (ret)
		return ret;
	if (seg->local_count > SERVICE_PIECES)
		return -FI_EINVAL;
	if (!tx) {
		tx = calloc(1, sizeof(*tx));
		if (!tx)
			return -FI_ENOMEM;
		link->service_tx = tx;
	}
	if (tx->count == SERVICE_SEGMENTS)
		return -FI_EAGAIN;
	s = segment_at(tx, tx->count);
	*s = (struct service_segment){.op = op,
				      .key = seg->remote.key,
				      .addr = seg->remote.addr,
				      .total = seg->len,
				      .len = seg->len,
				      .cookie = seg->cookie,
				      .local_count = (uint32_t)seg->local_count};
	memcpy(s->local, seg->local, seg->local_count * sizeof(*seg->local));
	tx->count++;
	service_push(link);
	shm_link_heat(link); /* progress looks for the answers */
	return 0;
}

bool shm_service_busy(const struct shm_link *link)
{
	return link->service_tx && link->service_tx->count > 0;
}

bool shm_service_ready(const struct shm_link *link)
{
	const struct shm_service_tx *tx = link->service_tx;
	const struct shm_service_mem *mem;

	if (!shm_service_busy(link) || tx->answered == tx->asked)
		return false;
	mem = service_mine(link);
	return atomic_load_explicit(&mem->slots[tx->answered % SHM_SERVICE_SLOTS].state,
				    memory_order_acquire) ==
	       slot_word(tx->answered, SHM_SLOT_DONE);
}

/* Reports the oldest segment and forgets it. */
static void segment_finish(struct shm_link *link, int err)
{
	struct shm_service_tx *tx = link->service_tx;
	void *cookie = segment_at(tx, 0)->cookie;

	tx->first = (tx->first + 1) % SERVICE_SEGMENTS;
	tx->count--;
	if (tx->next > 0)
		tx->next--;
	link->ep->events->segment_done(link->ep->arg, (struct wire_link *)(void *)link,
				       cookie, err);
}

/* Takes the answer to the oldest chunk. Returns true when its segment is finished. */
static bool chunk_take(struct shm_link *link)
{
	struct shm_service_tx *tx = link->service_tx;
	struct shm_service_mem *mem = service_mine(link);
	unsigned index = (unsigned)(tx->answered % SHM_SERVICE_SLOTS);
	/* Copied once; our own len decides how much was meant. */
	int32_t status = *(volatile int32_t *)&mem->slots[index].status;
	struct service_segment *s = segment_at(tx, 0);
	size_t len = s->asked - s->done;

	if (len > SHM_SERVICE_CHUNK)
		len = SHM_SERVICE_CHUNK;
	if (status > 0 || status < -4095)
		status = -FI_EIO;
	if (status == 0 && s->op == SHM_SERVICE_GET && s->status == 0)
		segment_copy(s, s->done, mem->chunks[index], len, false);
	s->done += len;
	tx->answered++;
	if (status && s->status == 0) {
		/* What wasn't asked yet needn't be. */
		s->status = status;
		if (!segment_asked(s)) {
			s->len = s->asked;
			tx->next++;
		}
	}
	return s->done == s->len;
}

int shm_service_collect(struct shm_link *link)
{
	int count = 0;

	while (shm_service_ready(link)) {
		if (chunk_take(link)) {
			count++;
			segment_finish(link, segment_at(link->service_tx, 0)->status);
			if (link->state > SHM_LINK_DRAINING)
				return count;
		}
		service_push(link);
	}
	return count;
}

void shm_service_fail(struct shm_link *link, int err)
{
	while (shm_service_busy(link) && link->state != SHM_LINK_DOWN)
		segment_finish(link, err);
}

void shm_service_tx_free(struct shm_service_tx *tx)
{
	free(tx);
}

/* ---- target --------------------------------------------------------------------------
 */

/* Moves len bytes between the pair memory, at `at`, and this process's memory. Through
 * the descriptor of the pair memory: the kernel then checks our addresses, and a
 * registration of memory that isn't there fails instead of killing the helper thread. */
static int piece_copy(int fd, enum shm_service_op op, off_t at, char *base, size_t len)
{
	while (len > 0) {
		ssize_t n = op == SHM_SERVICE_PUT ? pread(fd, base, len, at)
						  : pwrite(fd, base, len, at);

		if (n <= 0)
			return -FI_EFAULT;
		base += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The same of memory of whatever kind. */
static int move_piece(const struct shm_link *link, enum shm_service_op op, off_t at,
		      char *base, size_t len)
{
	uint8_t *chunk = (uint8_t *)link->pair + at;

	if (!mem_is_device(base, len))
		return piece_copy(link->pair_fd, op, at, base, len);
	return op == SHM_SERVICE_PUT ? mem_copy(base, chunk, len)
				     : mem_copy(chunk, base, len);
}

/* Moves a chunk; iov describes its whole segment. */
static int chunk_copy(struct shm_link *link, const struct shm_service_slot *slot,
		      unsigned index, const struct iovec *iov, uint32_t count)
{
	uint8_t *chunk = service_peer(link)->chunks[index];
	off_t at = (off_t)(chunk - (uint8_t *)link->pair);
	uint64_t offset = slot->offset;
	size_t len = slot->len;

	for (uint32_t i = 0; i < count && len > 0; i++) {
		size_t room = iov[i].iov_len, take;
		int ret;

		if (offset >= room) {
			offset -= room;
			continue;
		}
		take = room - offset < len ? room - offset : len;
		ret = move_piece(link, (enum shm_service_op)slot->op, at,
				 (char *)iov[i].iov_base + offset, take);
		if (ret)
			return ret;
		at += (off_t)take;
		len -= take;
		offset = 0;
	}
	return len == 0 ? 0 : -FI_EINVAL;
}

static int chunk_serve(struct shm_link *link, const struct shm_service_slot *slot,
		       unsigned index)
{
	struct iovec iov[MEM_REGION_IOV];
	uint32_t count, incarnation;
	int ret;

	if ((slot->op != SHM_SERVICE_PUT && slot->op != SHM_SERVICE_GET) ||
	    slot->len > SHM_SERVICE_CHUNK || slot->offset > slot->total ||
	    slot->len > slot->total - slot->offset)
		return -FI_EINVAL;
	/* Rule D3: ep->mutex is held from here to the end of the copy, and quiesce takes
	 * it: no mark of our own is needed. */
	ret = mem_keyview_find(link->ep->own_keys, slot->key, slot->addr, slot->total,
			       op_access((enum shm_service_op)slot->op), iov, &count,
			       &incarnation);
	return ret ? ret : chunk_copy(link, slot, index, iov, count);
}

static bool chunk_waits(struct shm_link *link)
{
	uint64_t chunk = link->service_rx.served;
	const struct shm_service_slot *slot =
		&service_peer(link)->slots[chunk % SHM_SERVICE_SLOTS];

	return atomic_load_explicit(&slot->state, memory_order_acquire) ==
	       slot_word(chunk, SHM_SLOT_ASKED);
}

bool shm_service_serve(struct shm_link *link)
{
	uint64_t chunk = link->service_rx.served;
	unsigned index = (unsigned)(chunk % SHM_SERVICE_SLOTS);
	struct shm_service_slot *slot = &service_peer(link)->slots[index];
	const volatile struct shm_service_slot *theirs = slot;
	struct shm_service_slot copy = {0};

	if (!chunk_waits(link))
		return false;
	copy.key = theirs->key;
	copy.addr = theirs->addr;
	copy.total = theirs->total;
	copy.offset = theirs->offset;
	copy.len = theirs->len;
	copy.op = theirs->op;
	slot->status = chunk_serve(link, &copy, index);
	link->service_rx.served++;
	atomic_exchange_explicit(&slot->state, slot_word(chunk, SHM_SLOT_DONE),
				 memory_order_seq_cst);
	/* The initiator may sleep, or not be looking at this link. */
	shm_hub_ring(&link->peer_hub);
	return true;
}

bool shm_service_rest(struct shm_link *link)
{
	struct shm_service_mem *mem = service_peer(link);

	atomic_store_explicit(&mem->attentive, 0, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	if (!chunk_waits(link))
		return true;
	atomic_store_explicit(&mem->attentive, 1, memory_order_relaxed);
	return false;
}
