/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that two processes must agree on: the two messages of the handshake and how
 * shared memory lies. Both ends are on one machine, so numbers are in host order; ports
 * and addresses are in network order as everywhere.
 *
 * Everything in here that a peer wrote is copied before it is checked, and checked before
 * it is used.
 */
#ifndef WEFT_WIRE_SHM_SHM_FORMAT_H
#define WEFT_WIRE_SHM_SHM_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/mem/device.h"
#include "prov/wire/addr.h"

#define SHM_CACHE_LINE 64
#define SHM_PAGE       4096

/* ---- handshake --------------------------------------------------------------------- */

#define SHM_MAGIC   UINT32_C(0x77667431) /* changes with SHM_VERSION's meaning never */
#define SHM_VERSION 4

enum shm_hello_kind {
	SHM_HELLO = 1,	/* dialler to acceptor */
	SHM_ANSWER = 2, /* acceptor to dialler */
	SHM_REFUSAL = 3 /* acceptor to dialler: status says why; no descriptors */
};

struct shm_hello_addr {
	uint16_t family; /* AF_INET, AF_INET6 */
	uint16_t port;	 /* network order */
	uint8_t host[16];
};

struct shm_hello {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint32_t size;	/* of this structure */
	int32_t status; /* refusal: negative fi_errno; else 0 */
	uint64_t incarnation;
	uint64_t cookie_addr; /* where `cookie` lies in the sender's process */
	uint64_t cookie[2]; /* random: reading it by cross-memory attach proves both that
			     * it works and that the process id means the sender */
	uint16_t hub_bit;   /* the sender's name for this link in its hub */
	uint16_t context;   /* of the sender's door: wire_addr.context */
	uint32_t pair_size; /* SHM_PAIR_SIZE */
	struct shm_hello_addr addr; /* the sender's door */
	uint32_t bulk_size;	    /* SHM_BULK_SIZE; 0: the sender has no bulk slots */
};

static_assert(sizeof(struct shm_hello_addr) == 20, "no holes");
static_assert(sizeof(struct shm_hello) == 80, "no holes");
static_assert(offsetof(struct shm_hello, addr) == 56, "no holes");

/* Descriptors that travel along, in this order; an answer has no pair memory, and there
 * may be no bulk slots. */
enum shm_hello_fd {
	SHM_FD_KEYS, /* key table */
	SHM_FD_HUB,  /* sender's hub */
	SHM_FD_WAKE, /* datagram socket: what is sent there wakes the sender's sleeper */
	SHM_FD_PAIR, /* memory of this link */
	SHM_FD_BULK, /* sender's bulk slots */
	SHM_FD_COUNT
};

/*
 * The one validator. Checks the bytes of a message that should be of kind `kind`
 * (SHM_ANSWER allows a refusal too) and fills *hello and *addr. 0, or -FI_EINVAL.
 */
int shm_hello_parse(const void *bytes, size_t len, enum shm_hello_kind kind,
		    struct shm_hello *hello, struct wire_addr *addr);
/* Fills in all fixed fields. */
void shm_hello_init(struct shm_hello *hello, enum shm_hello_kind kind,
		    const struct wire_addr *addr);

/* ---- after the handshake, on the link's socket: a byte is a bell (service), this is
 * about shared memory for applications -------------------------------------------------
 */

enum shm_share_kind {
	SHM_SHARE_ASK = 0x61736b31, /* the peer's segment, please */
	SHM_SHARE_GIVE = 0x67697631 /* here it is: its memory travels along */
};

struct shm_share_msg {
	uint32_t kind;
	uint32_t segment;
};

static_assert(sizeof(struct shm_share_msg) == 8, "no holes");

/* Memory of GPUs that a key names: told by its length from the others. */
enum shm_device_kind {
	SHM_DEVICE_ASK = 0x64766131, /* the piece with `addr` under `key`, please */
	SHM_DEVICE_GIVE = 0x64766731 /* here it is (a descriptor may travel along); of no
				      * length: it can't be had */
};

struct shm_device_msg {
	uint32_t kind;
	uint32_t incarnation; /* of the key's registration */
	uint64_t key;
	uint64_t addr;		     /* remote address */
	struct mem_device_name name; /* GIVE */
};

static_assert(sizeof(struct shm_device_msg) == 24 + 16 + MEM_DEVICE_NAME, "no holes");

/* ---- packet ring, one direction ---------------------------------------------------- */

#define SHM_RING_SIZE	(64 * 1024) /* with its header */
#define SHM_RING_HEADER (3 * SHM_CACHE_LINE)
#define SHM_RING_BYTES	(SHM_RING_SIZE - SHM_RING_HEADER)
#define SHM_MAX_PACKET	8448 /* 8 KiB and the headers of the layers above */

enum shm_ring_mode {
	SHM_RING_HOT = 0, /* the consumer looks at this ring all the time */
	SHM_RING_COLD = 1 /* it doesn't: it must be told through its hub */
};

/* Each line has one writer in the fast case. */
struct shm_ring_mem {
	_Atomic(uint64_t) consumed; /* by the consumer: bytes taken, lazily published */
	uint8_t pad0[56];
	_Atomic(uint32_t) mode; /* by the consumer: enum shm_ring_mode */
	uint8_t pad1[60];
	_Atomic(uint32_t) waiting; /* by the producer: it wants to hear about room */
	_Atomic(uint32_t) closed;  /* by the producer: orderly end, nothing follows */
	uint8_t pad2[56];
	uint8_t bytes[SHM_RING_BYTES];
};

static_assert(sizeof(struct shm_ring_mem) == SHM_RING_SIZE, "ring with its header");
static_assert(offsetof(struct shm_ring_mem, bytes) == SHM_RING_HEADER, "three lines");

/* A record: header word, then the packet; the next begins at the next cache line. The
 * header is 0 until the record is there. */
#define SHM_RECORD_HEADER 8
enum shm_record_kind {
	SHM_RECORD_NONE = 0,
	SHM_RECORD_PACKET = 1,
	SHM_RECORD_SKIP = 2 /* the next record is at the ring's start */
};

static inline uint64_t shm_record_word(enum shm_record_kind kind, uint32_t len)
{
	return (uint64_t)kind << 32 | len;
}

static_assert(SHM_MAX_PACKET + SHM_RECORD_HEADER <= SHM_RING_BYTES / 4, "rule B3");

/* ---- service: RMA where cross-memory attach is refused ------------------------------
 */

#define SHM_SERVICE_SLOTS 8
#define SHM_SERVICE_CHUNK (32 * 1024)

enum shm_service_op { SHM_SERVICE_PUT = 1, SHM_SERVICE_GET = 2 };

/* A slot's state word is its turn times four plus one of these. */
enum shm_service_state {
	SHM_SLOT_FREE = 0,
	SHM_SLOT_ASKED = 1, /* by the initiator */
	SHM_SLOT_DONE = 2   /* by the target's helper thread */
};

struct shm_service_slot {
	_Atomic(uint64_t) state;
	uint64_t key;
	uint64_t addr;	 /* of the whole segment, which must be inside the region: */
	uint64_t total;	 /* no byte of one that isn't is moved */
	uint64_t offset; /* of this chunk in the segment */
	uint32_t len;	 /* of this chunk */
	uint32_t op;
	int32_t status; /* by the target: 0 or negative fi_errno */
	uint32_t pad[3];
};

static_assert(sizeof(struct shm_service_slot) == SHM_CACHE_LINE, "one line");

/* One initiator, one target. */
struct shm_service_mem {
	_Atomic(uint32_t) attentive; /* by the target: its helper thread is looking */
	uint8_t pad[60];
	struct shm_service_slot slots[SHM_SERVICE_SLOTS];
	uint8_t pad2[SHM_PAGE - 64 - 64 * SHM_SERVICE_SLOTS];
	uint8_t chunks[SHM_SERVICE_SLOTS][SHM_SERVICE_CHUNK];
};

static_assert(offsetof(struct shm_service_mem, chunks) == SHM_PAGE, "whole pages");

/* ---- pair memory: one link ----------------------------------------------------------
 */

/* By the initiator: which of the target's keys it is using just now (rules D3, D4), or
 * that it is at work for a joint transfer. */
#define SHM_HAZARD_JOINT UINT64_MAX

struct shm_hazard {
	_Atomic(uint64_t) key;
	_Atomic(uint32_t) active;
	uint8_t pad[52];
};

static_assert(sizeof(struct shm_hazard) == SHM_CACHE_LINE, "one line");

/* A transfer that both ends copy. */
struct shm_joint_cell {
	/* By both: turn (16 bits, odd while the cell is in use), pieces that the owner
	 * took (24), pieces that its peer took (24). */
	_Atomic(uint64_t) claim;
	_Atomic(uint32_t) done;	  /* by the peer: pieces that it is through with */
	_Atomic(uint32_t) broken; /* by the peer: one of them isn't there */
	uint8_t pad[48];
};

static_assert(sizeof(struct shm_joint_cell) == SHM_CACHE_LINE, "one line");

#define SHM_JOINTS     16 /* at a time, each way */
#define SHM_JOINT_BITS 24 /* of a count of pieces */

/* Index 0: written (produced, initiated, owned) by the dialler, 1: by the acceptor. */
struct shm_pair_mem {
	struct shm_hazard hazard[2];
	struct shm_joint_cell joint[2][SHM_JOINTS];
	uint8_t pad[SHM_PAGE - (2 + 2 * SHM_JOINTS) * SHM_CACHE_LINE];
	struct shm_ring_mem ring[2];
	struct shm_service_mem service[2];
};

#define SHM_PAIR_SIZE sizeof(struct shm_pair_mem)
static_assert(sizeof(struct shm_pair_mem) % SHM_PAGE == 0, "whole pages");

/* ---- bulk slots: one endpoint; only the owner writes ---------------------------------
 */

#define SHM_BULK_SLOTS 31
#define SHM_BULK_SLOT  (128 * 1024)

struct shm_bulk_turn {
	_Atomic(uint32_t) count; /* goes up before the slot is filled anew */
	uint8_t pad[60];
};

struct shm_bulk_mem {
	struct shm_bulk_turn turn[SHM_BULK_SLOTS];
	uint8_t pad[SHM_PAGE - SHM_CACHE_LINE * SHM_BULK_SLOTS];
	uint8_t bytes[SHM_BULK_SLOTS][SHM_BULK_SLOT];
};

#define SHM_BULK_SIZE sizeof(struct shm_bulk_mem)
static_assert(sizeof(struct shm_bulk_turn) == SHM_CACHE_LINE, "one line");
static_assert(offsetof(struct shm_bulk_mem, bytes) == SHM_PAGE, "whole pages");
static_assert(sizeof(struct shm_bulk_mem) % SHM_PAGE == 0, "whole pages");
static_assert(sizeof(struct shm_bulk_mem) <= 4 << 20, "at most 4 MiB");

/* ---- hub: one endpoint ------------------------------------------------------------- */

#define SHM_HUB_WORDS 64
#define SHM_HUB_BITS  (SHM_HUB_WORDS * 64) /* most links of an endpoint */

struct shm_hub_mem {
	/* A wake-up is wanted: the number of this sleep, else 0. Taken back by who sent
	 * it. */
	_Atomic(uint32_t) sleeping;
	uint8_t pad0[60];
	_Atomic(uint64_t) summary; /* bit w: look at words[w] */
	uint8_t pad1[56];
	_Atomic(uint64_t) words[SHM_HUB_WORDS]; /* bit per link: look at it */
	uint8_t pad2[SHM_PAGE - 2 * SHM_CACHE_LINE - 8 * SHM_HUB_WORDS];
};

#define SHM_HUB_SIZE sizeof(struct shm_hub_mem)
static_assert(sizeof(struct shm_hub_mem) == SHM_PAGE, "one page");

#endif
