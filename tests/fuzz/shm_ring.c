/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet ring that the peer writes anything into: the consumer stays inside the ring,
 * and so does the producer whose consumer lies. The input is a list of 16-byte steps:
 * what to do, and the word that the peer writes.
 */
#include "config.h"

#include <string.h>

#include "prov/wire/shm/shm_ring.h"
#include "tests/fuzz/fuzz.h"

struct step {
	uint64_t word;
	uint32_t what; /* enum step_what, modulo their number */
	uint32_t arg;
};

enum step_what {
	STEP_PEEK,  /* the word is written where the consumer looks next */
	STEP_FIRST, /* at the ring's start, where a skip leads */
	STEP_SEND,  /* the word is the consumer's count, arg the packet's length */
	STEPS
};

struct ring {
	struct shm_ring_mem *mem;
	struct shm_ring_tx tx;
	struct shm_ring_rx rx;
};

static void inside_require(const struct ring *r, const void *pkt, size_t len)
{
	const uint8_t *at = pkt, *begin = r->mem->bytes;

	fuzz_require(at >= begin + SHM_RECORD_HEADER && len <= SHM_MAX_PACKET);
	fuzz_require(at + len <= begin + SHM_RING_BYTES);
}

/* False: the ring is broken, and the link would be reset. */
static bool step_peek(struct ring *r, const struct step *s)
{
	uint32_t at = s->what % STEPS == STEP_FIRST ? 0 : r->rx.offset;
	const void *pkt;
	uint32_t len;

	atomic_store(shm_ring_word(r->mem, at), s->word);
	switch (shm_ring_take(&r->rx, &pkt, &len)) {
	case SHM_RING_EMPTY:
		return true;
	case SHM_RING_BROKEN:
		return false;
	case SHM_RING_PACKET:
		break;
	}
	inside_require(r, pkt, len);
	if (shm_ring_is_due(&r->rx))
		shm_ring_publish(&r->rx);
	fuzz_require(r->rx.offset < SHM_RING_BYTES && r->rx.offset % SHM_CACHE_LINE == 0);
	return true;
}

static void step_send(struct ring *r, const struct step *s)
{
	size_t len = s->arg % (SHM_MAX_PACKET + 1);
	void *pkt;

	atomic_store(&r->mem->consumed, s->word);
	pkt = shm_ring_reserve(&r->tx, len, s->arg & 1 ? SHM_RING_BYTES / 4 : 0);
	if (pkt) {
		inside_require(r, pkt, len);
		memset(pkt, 0x5a, len);
		shm_ring_commit(&r->tx, pkt, len);
	}
	fuzz_require(r->tx.offset < SHM_RING_BYTES);
}

bool fuzz_one(const uint8_t *data, size_t size)
{
	static struct shm_ring_mem *mem;
	struct ring r;
	bool good = size >= sizeof(struct step);

	if (!mem)
		mem = aligned_alloc(SHM_CACHE_LINE, sizeof(*mem));
	fuzz_require(mem != NULL);
	/* Words that the input did not write are what a peer may have left as well. */
	memset(mem, 0, sizeof(*mem));
	r.mem = mem;
	shm_ring_tx_init(&r.tx, mem);
	shm_ring_rx_init(&r.rx, mem);
	for (; size >= sizeof(struct step) && good;
	     data += sizeof(struct step), size -= sizeof(struct step)) {
		struct step s;

		memcpy(&s, data, sizeof(s));
		if (s.what % STEPS == STEP_SEND)
			step_send(&r, &s);
		else
			good = step_peek(&r, &s);
	}
	return good;
}

size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM])
{
	const struct step packets[] = {
		{.word = shm_record_word(SHM_RECORD_PACKET, 100), .what = STEP_PEEK},
		{.word = shm_record_word(SHM_RECORD_PACKET, 8000), .what = STEP_PEEK},
		{.word = shm_record_word(SHM_RECORD_SKIP, 0), .what = STEP_PEEK},
		{.word = shm_record_word(SHM_RECORD_PACKET, 8), .what = STEP_FIRST},
	};
	const struct step sends[] = {
		{.what = STEP_SEND, .arg = 8000},
		{.what = STEP_SEND, .arg = 64, .word = 64},
		{.what = STEP_SEND, .arg = 8001, .word = 8192},
	};

	switch (number) {
	case 0:
		memcpy(room, packets, sizeof(packets));
		return sizeof(packets);
	case 1:
		memcpy(room, sends, sizeof(sends));
		return sizeof(sends);
	default:
		return 0;
	}
}
