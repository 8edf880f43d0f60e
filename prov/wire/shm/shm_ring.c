/* SPDX-License-Identifier: BSD-2-Clause */
/* Packet ring: what isn't on the fast path. */
#include "config.h"

#include "prov/wire/shm/shm_ring.h"

void shm_ring_tx_init(struct shm_ring_tx *tx, struct shm_ring_mem *mem)
{
	*tx = (struct shm_ring_tx){.mem = mem, .slot = {.room = -1}};
}

void shm_ring_rx_init(struct shm_ring_rx *rx, struct shm_ring_mem *mem)
{
	*rx = (struct shm_ring_rx){.mem = mem};
}

/* Bytes between producer and consumer, by the newest count; a count that can't be counts
 * as a full ring, so that a peer that writes nonsense harms only itself. */
static uint32_t ring_used(struct shm_ring_tx *tx)
{
	uint64_t used;

	tx->consumed = atomic_load_explicit(&tx->mem->consumed, memory_order_acquire);
	used = tx->produced - tx->consumed;
	return used <= SHM_RING_BYTES ? (uint32_t)used : SHM_RING_BYTES;
}

static bool ring_fits(struct shm_ring_tx *tx, uint32_t need)
{
	uint64_t used = tx->produced - tx->consumed;

	return used + need <= SHM_RING_BYTES || ring_used(tx) + need <= SHM_RING_BYTES;
}

/* No room: ask to be told. True when some came in between. */
static bool ring_block(struct shm_ring_tx *tx, uint32_t need)
{
	tx->want = need;
	tx->blocked = true;
	return shm_ring_unblock(tx);
}

/* The room for data from the next record on, and no further than a line before the
 * ring's end. */
static void ring_slot(struct shm_ring_tx *tx)
{
	uint32_t taken = ring_used(tx) + SHM_RING_DATA_SPARE + SHM_CACHE_LINE;
	uint32_t room = taken < SHM_RING_BYTES ? SHM_RING_BYTES - taken : 0;
	uint32_t left = SHM_RING_BYTES - tx->offset - SHM_CACHE_LINE;

	room = (room < left ? room : left) & ~(uint32_t)(SHM_CACHE_LINE - 1);
	tx->slot.at = tx->mem->bytes + tx->offset + SHM_RECORD_HEADER;
	tx->slot.room = (int64_t)room - SHM_RECORD_HEADER;
}

void *shm_ring_reserve(struct shm_ring_tx *tx, size_t len, uint32_t spare)
{
	uint32_t size = shm_record_size(len);
	uint32_t left = SHM_RING_BYTES - tx->offset;
	uint32_t skip = size > left ? left : 0;
	/* One line more, for the header word behind the record. */
	uint32_t need = skip + size + SHM_CACHE_LINE + spare;

	if (!ring_fits(tx, need) && !ring_block(tx, need))
		return NULL;
	if (skip) {
		atomic_store_explicit(shm_ring_word(tx->mem, 0), 0, memory_order_relaxed);
		atomic_store_explicit(shm_ring_word(tx->mem, tx->offset),
				      shm_record_word(SHM_RECORD_SKIP, 0),
				      memory_order_release);
		tx->produced += skip;
		tx->offset = 0;
		tx->slot.room = -1;
	}
	if (tx->slot.room < (int64_t)len)
		ring_slot(tx);
	return tx->mem->bytes + tx->offset + SHM_RECORD_HEADER;
}

void shm_ring_claim(struct shm_ring_tx *tx, size_t len)
{
	const uint8_t *next = tx->mem->bytes + tx->offset;
	uint32_t size = shm_record_size(len);

	/* The consumer may still read what isn't known to be free. */
	if (tx->slot.room < (int64_t)size)
		return;
	prefetch_write_all((const char *)next + SHM_CACHE_LINE, size - SHM_CACHE_LINE);
}

bool shm_ring_unblock(struct shm_ring_tx *tx)
{
	if (ring_used(tx) + tx->want > SHM_RING_BYTES) {
		/* The flag stands, or the consumer took it for less room than is wanted:
		 * set it (again), then look once more. */
		if (atomic_load_explicit(&tx->mem->waiting, memory_order_relaxed))
			return false;
		atomic_store_explicit(&tx->mem->waiting, 1, memory_order_seq_cst);
		atomic_thread_fence(memory_order_seq_cst);
		if (ring_used(tx) + tx->want > SHM_RING_BYTES)
			return false;
	}
	tx->blocked = false;
	atomic_store_explicit(&tx->mem->waiting, 0, memory_order_relaxed);
	return true;
}

/* Each word is read once: the peer may write another one at any time. */
enum shm_ring_found shm_ring_take(struct shm_ring_rx *rx, const void **pkt, uint32_t *len)
{
	uint64_t word = atomic_load_explicit(shm_ring_word(rx->mem, rx->offset),
					     memory_order_acquire);

	if (word == 0)
		return SHM_RING_EMPTY;
	if (!shm_record_is_packet(word, len) || !shm_record_fits(rx->offset, *len)) {
		/* A skip at the start would lead to itself for ever. */
		if (word >> 32 != SHM_RECORD_SKIP || rx->offset == 0)
			return SHM_RING_BROKEN;
		rx->consumed += SHM_RING_BYTES - rx->offset;
		rx->offset = 0;
		word = atomic_load_explicit(shm_ring_word(rx->mem, 0),
					    memory_order_acquire);
		if (word == 0)
			return SHM_RING_EMPTY;
		if (!shm_record_is_packet(word, len))
			return SHM_RING_BROKEN;
	}
	*pkt = shm_ring_accept(rx, *len);
	return SHM_RING_PACKET;
}

bool shm_ring_publish(struct shm_ring_rx *rx)
{
	rx->published = rx->consumed;
	/* Full barrier: either the producer sees the new count when it looks again after
	 * saying that it waits, or we see that it waits. */
	atomic_exchange_explicit(&rx->mem->consumed, rx->consumed, memory_order_seq_cst);
	if (!atomic_load_explicit(&rx->mem->waiting, memory_order_seq_cst))
		return false;
	return atomic_exchange_explicit(&rx->mem->waiting, 0, memory_order_relaxed) != 0;
}

void shm_ring_set_mode(struct shm_ring_rx *rx, enum shm_ring_mode mode)
{
	atomic_store_explicit(&rx->mem->mode, mode, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
}
