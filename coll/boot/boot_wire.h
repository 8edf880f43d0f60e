/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bootstrap's wire format: one header for every message, then the payload. All fields
 * are big-endian. Only this file and boot_wire.c know the layout; boot_wire_check()
 * rejects anything short, long or out of range before a field is used.
 *
 *   HELLO    rank -> 0   no payload    here I am; seq is equal at ranks of one host, or 0
 *   ACCEPT   0 -> rank   no payload    known; wait for the others
 *   WELCOME  0 -> rank   no payload    all ranks are there
 *   GATHER   rank -> 0   len bytes     contribution to all-gather number seq
 *   RESULT   0 -> rank   size * len    all contributions, in rank order
 *   LEAD     0 -> rank   size * len    RESULT; make a table of it for your host
 *   TABLE    both ways   no payload    the result is a file: seq is the process that has
 *                                      it << 32 | its descriptor
 *   TOOK     rank -> 0   no payload    I have the table of all-gather number seq
 *   MISS     rank -> 0   no payload    I can't find it, or make it: send RESULT
 *   FAIL     0 -> rank   len bytes     text for people; code is an enum weft_result, rank
 *                                      the one that it is about
 *
 * Every message carries the job's secret. It travels in clear: it keeps strangers and
 * other jobs away, not somebody who reads the network.
 */
#ifndef WEFT_BOOT_BOOT_WIRE_H
#define WEFT_BOOT_BOOT_WIRE_H

#include <stddef.h>
#include <stdint.h>

enum boot_type {
	BOOT_HELLO = 1,
	BOOT_ACCEPT,
	BOOT_WELCOME,
	BOOT_GATHER,
	BOOT_RESULT,
	BOOT_FAIL,
	BOOT_LEAD,
	BOOT_TABLE,
	BOOT_TOOK,
	BOOT_MISS,
	BOOT_TYPE_END
};

enum {
	BOOT_WIRE_VERSION = 2,
	BOOT_JOB_LEN = 64, /* the secret, padded with zeros */
	BOOT_HDR_LEN = 104,
	BOOT_TEXT_MAX = 700,
	BOOT_SIZE_MAX = 1 << 24, /* ranks */
};

/* Longest contribution of one rank, bytes. */
#define BOOT_LEN_MAX ((uint64_t)1 << 32)

struct boot_be32 {
	uint8_t b[4];
};

struct boot_be64 {
	uint8_t b[8];
};

struct boot_hdr {
	uint8_t magic[4]; /* "WEFB" */
	uint8_t version;
	uint8_t type;
	uint8_t zero[2];
	struct boot_be32 rank; /* who sends; in FAIL whom it is about */
	struct boot_be32 size; /* ranks of the job, as the sender knows it */
	struct boot_be64 seq;
	struct boot_be64 len;
	struct boot_be32 code;
	uint8_t zero2[4];
	uint8_t job[BOOT_JOB_LEN];
};

_Static_assert(sizeof(struct boot_hdr) == BOOT_HDR_LEN, "header has no holes");
_Static_assert(offsetof(struct boot_hdr, job) == 40, "secret at byte 40");

/* A header's fields, host byte order. */
struct boot_msg {
	enum boot_type type;
	int32_t rank;
	int32_t size;
	uint64_t seq;
	uint64_t len;
	uint32_t code;
};

enum boot_wire_fault {
	BOOT_WIRE_GOOD = 0,
	BOOT_WIRE_SHORT,
	BOOT_WIRE_MAGIC,
	BOOT_WIRE_VERSION_OTHER,
	BOOT_WIRE_TYPE,
	BOOT_WIRE_ZERO, /* a reserved byte, or a field that this type has no use for */
	BOOT_WIRE_JOB,
	BOOT_WIRE_RANK,
	BOOT_WIRE_LEN,
	BOOT_WIRE_CODE,
	BOOT_WIRE_PLACE, /* no process, or no descriptor */
};

/* job has BOOT_JOB_LEN bytes. */
void boot_wire_put(struct boot_hdr *hdr, const struct boot_msg *msg, const uint8_t *job);

/* msg is written only when the answer is GOOD. */
enum boot_wire_fault boot_wire_check(const void *buf, size_t len, const uint8_t *job,
				     struct boot_msg *msg);

const char *boot_type_name(enum boot_type type);

#endif
