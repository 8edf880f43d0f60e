/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet ring: one producer, one consumer, in memory that both can write. The producer
 * fills a packet in place; the consumer looks at the next record's header word only, so
 * that a small packet costs one cache line and no shared index.
 *
 * Invariant: the header word at the producer's position is 0 and inside the free space,
 * so that the consumer can never run into bytes of the round before.
 */
#ifndef WEFT_WIRE_SHM_SHM_RING_H
#define WEFT_WIRE_SHM_SHM_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/shm/shm_format.h"
#include "prov/wire/wire.h"
#include "util/prefetch.h"

/* What data packets leave free for control packets (rule B3). */
#define SHM_RING_DATA_SPARE (SHM_RING_BYTES / 4)

/* The producer's private half. */
struct shm_ring_tx {
	struct shm_ring_mem *mem;
	/* The next record, if it carries data. Such a record never ends at the ring's
	 * end. Behind it is free what data leaves to control packets. */
	struct wire_slot slot;
	uint32_t offset;   /* of the next record in mem->bytes */
	bool blocked;	   /* a reservation failed and room was asked for */
	uint64_t produced; /* bytes in all, skips included */
	uint64_t consumed; /* what we last saw of the consumer's count */
	uint32_t want;	   /* blocked: bytes that would do */
};

/* The consumer's private half. */
struct shm_ring_rx {
	struct shm_ring_mem *mem;
	uint32_t offset;
	uint64_t consumed;
	uint64_t published; /* what the producer knows of `consumed` */
};

void shm_ring_tx_init(struct shm_ring_tx *tx, struct shm_ring_mem *mem);
void shm_ring_rx_init(struct shm_ring_rx *rx, struct shm_ring_mem *mem);

/* Bytes of a record, a multiple of the cache line. */
static inline uint32_t shm_record_size(size_t len)
{
	return (uint32_t)((len + SHM_RECORD_HEADER + SHM_CACHE_LINE - 1) &
			  ~(size_t)(SHM_CACHE_LINE - 1));
}

static inline _Atomic(uint64_t) *shm_ring_word(struct shm_ring_mem *mem, uint32_t offset)
{
	return (_Atomic(uint64_t) *)(void *)(mem->bytes + offset);
}

/* Room for a packet of len bytes, or NULL. spare: bytes that must stay free behind it.
 * On failure the consumer is asked to tell about room (tx->blocked). */
void *shm_ring_reserve(struct shm_ring_tx *tx, size_t len, uint32_t spare);

/* Publishes the packet at pkt, which the last reservation gave. Returns true when the
 * consumer isn't looking and must be told. Claims the line behind the next record if it
 * is as long as this one: it is in the consumer's cache since the last round, and asking
 * for it when it is written would be waited for. */
static inline bool shm_ring_commit(struct shm_ring_tx *tx, void *pkt, size_t len)
{
	struct shm_ring_mem *mem = tx->mem;
	uint32_t size = shm_record_size(len);
	uint32_t next = tx->offset + size;

	tx->produced += size;
	tx->slot.at = (char *)pkt + size;
	tx->slot.room -= size;
	if (__builtin_expect(next == SHM_RING_BYTES, 0)) {
		next = 0;
		tx->slot.room = -1;
	}
	tx->offset = next;
	atomic_store_explicit(shm_ring_word(mem, next), 0, memory_order_relaxed);
	/* A full barrier, since the mode is read after it: either we see that the
	 * consumer went away, or it sees this record when it looks again. */
	atomic_exchange_explicit(
		(_Atomic(uint64_t) *)(void *)((char *)pkt - SHM_RECORD_HEADER),
		shm_record_word(SHM_RECORD_PACKET, (uint32_t)len), memory_order_seq_cst);
	/* Behind the ring's end it is in vain. */
	prefetch_write((char *)pkt - SHM_RECORD_HEADER + 2 * (size_t)size);
	return atomic_load_explicit(&mem->mode, memory_order_seq_cst) != SHM_RING_HOT;
}

/* After a commit of len bytes: claims all lines of a record as long as that. */
void shm_ring_claim(struct shm_ring_tx *tx, size_t len);

/* Whether a reservation that failed would succeed now; then nobody is blocked any more.
 */
bool shm_ring_unblock(struct shm_ring_tx *tx);

enum shm_ring_found {
	SHM_RING_EMPTY,
	SHM_RING_PACKET,
	SHM_RING_BROKEN /* the peer wrote nonsense */
};

/* Whether a record is there (or nonsense, which a peek will tell). */
static inline bool shm_ring_ready(const struct shm_ring_rx *rx)
{
	return atomic_load_explicit(shm_ring_word(rx->mem, rx->offset),
				    memory_order_acquire) != 0;
}

static inline bool shm_record_fits(uint32_t offset, uint32_t len)
{
	return offset + len <= (uint32_t)SHM_RING_BYTES - SHM_RECORD_HEADER;
}

/* A packet's header word, of a length that may be; *len is set in any case. */
static inline bool shm_record_is_packet(uint64_t word, uint32_t *len)
{
	*len = (uint32_t)word;
	return word >> 32 == SHM_RECORD_PACKET && (uint32_t)word <= SHM_MAX_PACKET;
}

/*
 * Takes the packet of len bytes at rx->offset. It stays where it is, and the producer
 * stays out of there, until shm_ring_publish tells that it was taken.
 */
static inline const void *shm_ring_accept(struct shm_ring_rx *rx, uint32_t len)
{
	const void *pkt = rx->mem->bytes + rx->offset + SHM_RECORD_HEADER;
	uint32_t size = shm_record_size(len);

	rx->consumed += size;
	rx->offset += size;
	if (__builtin_expect(rx->offset == SHM_RING_BYTES, 0))
		rx->offset = 0;
	return pkt;
}

/* The next packet if it is there just so; false: shm_ring_take knows more. */
static inline bool shm_ring_take_next(struct shm_ring_rx *rx, const void **pkt,
				      uint32_t *len)
{
	uint64_t word = atomic_load_explicit(shm_ring_word(rx->mem, rx->offset),
					     memory_order_acquire);

	if (__builtin_expect(!shm_record_is_packet(word, len) ||
				     !shm_record_fits(rx->offset, *len),
			     0))
		return false;
	*pkt = shm_ring_accept(rx, *len);
	return true;
}

/* The next packet, in any case. */
enum shm_ring_found shm_ring_take(struct shm_ring_rx *rx, const void **pkt,
				  uint32_t *len);

/* So much was taken that the producer must hear of it. */
static inline bool shm_ring_is_due(const struct shm_ring_rx *rx)
{
	return rx->consumed - rx->published >= SHM_RING_BYTES / 4;
}

/* Tells the producer what was taken. Returns true when it waits for that and must be
 * woken. */
bool shm_ring_publish(struct shm_ring_rx *rx);

/* Consumer: from now on the producer rings before (COLD), or needn't any more (HOT).
 * After COLD the caller must look at the ring once more: shm_ring_ready. */
void shm_ring_set_mode(struct shm_ring_rx *rx, enum shm_ring_mode mode);

#endif
