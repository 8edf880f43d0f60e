/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot_wire.h. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "coll/boot/boot_wire.h"
#include "weft/weft.h"

static const uint8_t wire_magic[4] = {'W', 'E', 'F', 'B'};

/* What a type may carry; the validator and the names come from here. */
struct type_row {
	const char *name;
	uint64_t len_min, len_max;
	bool has_seq, has_code, has_place; /* a place is a seq */
};

static const struct type_row type_table[BOOT_TYPE_END] = {
	[BOOT_HELLO] = {"hello", 0, 0, true, false, false},
	[BOOT_ACCEPT] = {"accept", 0, 0, false, false, false},
	[BOOT_WELCOME] = {"welcome", 0, 0, false, false, false},
	[BOOT_GATHER] = {"gather", 0, BOOT_LEN_MAX, true, false, false},
	[BOOT_RESULT] = {"result", 0, BOOT_LEN_MAX, true, false, false},
	[BOOT_FAIL] = {"fail", 1, BOOT_TEXT_MAX, false, true, false},
	[BOOT_LEAD] = {"lead", 0, BOOT_LEN_MAX, true, false, false},
	[BOOT_TABLE] = {"table", 0, 0, true, false, true},
	[BOOT_TOOK] = {"took", 0, 0, true, false, false},
	[BOOT_MISS] = {"miss", 0, 0, true, false, false},
};

static struct boot_be32 put32(uint32_t v)
{
	struct boot_be32 be;

	for (int i = 0; i < 4; i++)
		be.b[i] = (uint8_t)(v >> (24 - 8 * i));
	return be;
}

static struct boot_be64 put64(uint64_t v)
{
	struct boot_be64 be;

	for (int i = 0; i < 8; i++)
		be.b[i] = (uint8_t)(v >> (56 - 8 * i));
	return be;
}

static uint32_t get32(const struct boot_be32 *be)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v = v << 8 | be->b[i];
	return v;
}

static uint64_t get64(const struct boot_be64 *be)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | be->b[i];
	return v;
}

/* Takes the same time wherever the first difference is. */
static bool secret_equal(const uint8_t *a, const uint8_t *b)
{
	unsigned diff = 0;

	for (int i = 0; i < BOOT_JOB_LEN; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}

void boot_wire_put(struct boot_hdr *hdr, const struct boot_msg *msg, const uint8_t *job)
{
	memset(hdr, 0, sizeof(*hdr));
	memcpy(hdr->magic, wire_magic, sizeof(wire_magic));
	hdr->version = BOOT_WIRE_VERSION;
	hdr->type = (uint8_t)msg->type;
	hdr->rank = put32((uint32_t)msg->rank);
	hdr->size = put32((uint32_t)msg->size);
	hdr->seq = put64(msg->seq);
	hdr->len = put64(msg->len);
	hdr->code = put32(msg->code);
	memcpy(hdr->job, job, BOOT_JOB_LEN);
}

enum boot_wire_fault boot_wire_check(const void *buf, size_t len, const uint8_t *job,
				     struct boot_msg *msg)
{
	const struct boot_hdr *hdr = buf; /* bytes only: no alignment needed */
	const struct type_row *row;
	struct boot_msg m;
	uint32_t rank, size;

	if (len < sizeof(*hdr))
		return BOOT_WIRE_SHORT;
	if (memcmp(hdr->magic, wire_magic, sizeof(wire_magic)) != 0)
		return BOOT_WIRE_MAGIC;
	if (hdr->version != BOOT_WIRE_VERSION)
		return BOOT_WIRE_VERSION_OTHER;
	if (!secret_equal(hdr->job, job))
		return BOOT_WIRE_JOB;
	if (hdr->type == 0 || hdr->type >= BOOT_TYPE_END)
		return BOOT_WIRE_TYPE;
	row = &type_table[hdr->type];
	rank = get32(&hdr->rank);
	size = get32(&hdr->size);
	m.seq = get64(&hdr->seq);
	m.len = get64(&hdr->len);
	m.code = get32(&hdr->code);
	if (size == 0 || size > BOOT_SIZE_MAX || rank >= size)
		return BOOT_WIRE_RANK;
	if (m.len < row->len_min || m.len > row->len_max)
		return BOOT_WIRE_LEN;
	if (row->has_code && (m.code == WEFT_SUCCESS || m.code >= WEFT_RESULT_COUNT))
		return BOOT_WIRE_CODE;
	if (row->has_place &&
	    (m.seq >> 32 == 0 || m.seq >> 32 > INT32_MAX || (uint32_t)m.seq > INT32_MAX))
		return BOOT_WIRE_PLACE;
	if (hdr->zero[0] || hdr->zero[1] || get32((const void *)hdr->zero2) ||
	    (!row->has_seq && m.seq) || (!row->has_code && m.code))
		return BOOT_WIRE_ZERO;
	m.type = (enum boot_type)hdr->type;
	m.rank = (int32_t)rank;
	m.size = (int32_t)size;
	*msg = m;
	return BOOT_WIRE_GOOD;
}

const char *boot_type_name(enum boot_type type)
{
	if (type == 0 || (unsigned)type >= BOOT_TYPE_END)
		return "?";
	return type_table[type].name;
}
