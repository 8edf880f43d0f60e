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

/* The producer's private half. */
struct shm_ring_tx {
	struct shm_ring_mem *mem;
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
 * consumer isn't looking and must be told. */
static inline bool shm_ring_commit(struct shm_ring_tx *tx, void *pkt, size_t len)
{
	struct shm_ring_mem *mem = tx->mem;
	uint32_t size = shm_record_size(len);
	uint32_t next = tx->offset + size;

	(void)pkt;
	if (next == SHM_RING_BYTES)
		next = 0;
	atomic_store_explicit(shm_ring_word(mem, next), 0, memory_order_relaxed);
	/* A full barrier, since the mode is read after it: either we see that the
	 * consumer went away, or it sees this record when it looks again. */
	atomic_exchange_explicit(shm_ring_word(mem, tx->offset),
				 shm_record_word(SHM_RECORD_PACKET, (uint32_t)len),
				 memory_order_seq_cst);
	tx->offset = next;
	tx->produced += size;
	return atomic_load_explicit(&mem->mode, memory_order_seq_cst) != SHM_RING_HOT;
}

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

/* The slow half of a peek: a skip, or nonsense. */
enum shm_ring_found shm_ring_peek_odd(struct shm_ring_rx *rx, uint64_t word,
				      const void **pkt, uint32_t *len);

static inline bool shm_record_fits(uint32_t offset, uint32_t len)
{
	return len <= SHM_MAX_PACKET &&
	       len + SHM_RECORD_HEADER <= (uint32_t)SHM_RING_BYTES - offset;
}

/* The next packet, left where it is. */
static inline enum shm_ring_found shm_ring_peek(struct shm_ring_rx *rx, const void **pkt,
						uint32_t *len)
{
	uint64_t word = atomic_load_explicit(shm_ring_word(rx->mem, rx->offset),
					     memory_order_acquire);

	if (word == 0)
		return SHM_RING_EMPTY;
	if (word >> 32 != SHM_RECORD_PACKET ||
	    !shm_record_fits(rx->offset, (uint32_t)word))
		return shm_ring_peek_odd(rx, word, pkt, len);
	*pkt = rx->mem->bytes + rx->offset + SHM_RECORD_HEADER;
	*len = (uint32_t)word;
	return SHM_RING_PACKET;
}

/* Gives the packet of len bytes (as peek said) back. Returns true when so much was taken
 * that the producer must hear of it (shm_ring_publish). */
static inline bool shm_ring_release(struct shm_ring_rx *rx, uint32_t len)
{
	uint32_t size = shm_record_size(len);

	rx->consumed += size;
	rx->offset += size;
	if (rx->offset == SHM_RING_BYTES)
		rx->offset = 0;
	return rx->consumed - rx->published >= SHM_RING_BYTES / 4;
}

/* Tells the producer what was taken. Returns true when it waits for that and must be
 * woken. */
bool shm_ring_publish(struct shm_ring_rx *rx);

/* Consumer: from now on the producer rings before (COLD), or needn't any more (HOT).
 * After COLD the caller must look at the ring once more: shm_ring_ready. */
void shm_ring_set_mode(struct shm_ring_rx *rx, enum shm_ring_mode mode);

#endif
