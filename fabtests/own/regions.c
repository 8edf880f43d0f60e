/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration modes that something may demand: regions that nobody may use before they
 * are bound and enabled (FI_MR_ENDPOINT, FI_MR_RMA_EVENT), and raw keys (FI_MR_RAW).
 * Nothing in Weft needs them, so they are demanded by FI_WEFT_MR_DEMAND. Role 0 accesses,
 * role 1 is the target.
 */
#include "config.h"

#include "fabtests/own/remote.h"

#include <rdma/fi_atomic.h>
#include <stdlib.h>
#include <string.h>

#include "util/fi_names.h"

#define OFFERED \
	(BASE_MODE | FI_MR_RAW | FI_MR_MMU_NOTIFY | FI_MR_RMA_EVENT | FI_MR_ENDPOINT)
#define CAPS   (FI_RMA | FI_MSG | FI_ATOMIC | FI_RMA_EVENT)
#define LEN    (1u << 20)
#define ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static void demand(const char *what)
{
	setenv("FI_WEFT_MR_DEMAND", what, 1);
}

static void open_with(struct side *s, const char *what, int offered, int expected)
{
	struct want want = {
		.caps = CAPS, .mr_mode = offered, .tx_op_flags = FI_DELIVERY_COMPLETE};

	demand(what);
	node_open(s, &want);
	side_check_u64(s, (uint64_t)s->node.info->domain_attr->mr_mode,
		       (uint64_t)expected, "mr_mode");
}

/* What an initiator needs; nothing of it needs to be registered. */
static void here_open(struct initiator *in)
{
	*in = (struct initiator){.mem = mem_new(MEM_SIZE)};
	mem_fill(in->mem, LEN, 9);
}

static void all_refused(struct side *s, struct initiator *in, const char *what)
{
	uint64_t base = in->remote.base, key = in->remote.key;
	struct done d;

	refused(s, in, true, base, key, 8, what);
	refused(s, in, false, base, key, 8, what);
	refused(s, in, true, base, key, LEN, what);
	while (node_again(s,
			  fi_atomic(s->node.ep, in->mem, 1, NULL, s->node.peer, base, key,
				    FI_UINT64, FI_SUM, &d),
			  "fi_atomic"))
		;
	if (!node_next(s, &d, WAIT_MS) || !d.err)
		side_die(s, "an atomic operation on a region that is %s", what);
}

static void all_done(struct side *s, struct initiator *in)
{
	struct done d;

	write_post(s, in, 0, 8, &d);
	node_expect(s, &d, WRITES, &d);
	write_post(s, in, 0, LEN, &d);
	node_expect(s, &d, WRITES, &d);
	memset(in->mem, 0, LEN);
	read_post(s, in, 0, LEN, &d);
	node_expect(s, &d, READS, &d);
	mem_check(s, in->mem, LEN, 9, "written and read back");
}

/* ---- FI_MR_ENDPOINT */

static void endpoint_run(struct side *s)
{
	static const char *const states[] = {"neither bound nor enabled", "only bound"};
	struct initiator in;

	open_with(s, "endpoint", FI_MR_ENDPOINT | FI_MR_RAW, FI_MR_ENDPOINT);
	here_open(&in);
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		side_hear(s, &in.remote, sizeof(in.remote));
		all_refused(s, &in, states[i]);
		side_meet(s);
	}
	side_hear(s, &in.remote, sizeof(in.remote));
	all_done(s, &in);
	side_meet(s);
	/* Closed, and another one with the same key that isn't enabled. */
	side_hear(s, &in.remote, sizeof(in.remote));
	all_refused(s, &in, "registered anew");
	side_meet(s);
	node_close(s, &s->node);
}

static void endpoint_target(struct side *s)
{
	struct answer a = {.key = 0x77};
	uint8_t *mem = mem_new(LEN);
	struct fid_mr *mr;

	open_with(s, "endpoint", FI_MR_ENDPOINT, FI_MR_ENDPOINT);
	side_must(s, fi_mr_reg(s->node.domain, mem, LEN, ACCESS, 0, 0x77, 0, &mr, NULL),
		  "fi_mr_reg");
	side_check(s, fi_mr_key(mr) == FI_KEY_NOTAVAIL, "a key before its time");
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	side_check(s, fi_mr_enable(mr) == -FI_EOPBADSTATE, "enabled before it is bound");
	side_must(s, fi_mr_bind(mr, &s->node.ep->fid, 0), "fi_mr_bind");
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	for (size_t i = 0; i < LEN; i++)
		if (mem[i] != 0xee)
			side_die(s, "byte %zu has changed", i);
	side_must(s, fi_mr_enable(mr), "fi_mr_enable");
	side_check_u64(s, fi_mr_key(mr), 0x77, "key");
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	mem_check(s, mem, LEN, 9, "target");
	side_must(s, fi_close(&mr->fid), "fi_close of a region");
	side_must(s, fi_mr_reg(s->node.domain, mem, LEN, ACCESS, 0, 0x77, 0, &mr, NULL),
		  "fi_mr_reg");
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	mem_check(s, mem, LEN, 9, "target");
	side_must(s, fi_close(&mr->fid), "fi_close of a region");
	node_close(s, &s->node);
}

/* ---- FI_MR_RAW */

struct raw {
	uint64_t base;
	size_t size;
	uint8_t key[16];
};

static void raw_run(struct side *s)
{
	struct raw raw, hostile;
	struct initiator in;
	uint64_t key;

	open_with(s, "raw", OFFERED, FI_MR_RAW | (OFFERED & BASE_MODE & ~FI_MR_LOCAL));
	here_open(&in);
	side_hear(s, &raw, sizeof(raw));
	side_must(s, fi_mr_map_raw(s->node.domain, raw.base, raw.key, raw.size, &key, 0),
		  "fi_mr_map_raw");
	in.remote = (struct answer){.key = key, .base = raw.base};
	all_done(s, &in);
	/* Whatever a stranger sends in place of a key opens nothing. */
	for (int i = 0; i < 16; i++) {
		hostile = raw;
		mem_fill(hostile.key, i < 8 ? 8 : 4, (uint32_t)i + 100);
		side_must(
			s,
			fi_mr_map_raw(s->node.domain, raw.base, hostile.key, 8, &key, 0),
			"fi_mr_map_raw");
		if (!memcmp(hostile.key, raw.key, 8))
			continue;
		refused(s, &in, true, raw.base, key, 8, "a raw key that is none");
		side_must(s, fi_mr_unmap_key(s->node.domain, key), "fi_mr_unmap_key");
	}
	for (size_t size = 0; size < 16; size++)
		side_check(s,
			   fi_mr_map_raw(s->node.domain, raw.base, raw.key, size, &key,
					 0) == (size == 8 ? 0 : -FI_EINVAL),
			   "a raw key of %zu bytes", size);
	side_must(s, fi_mr_unmap_key(s->node.domain, in.remote.key), "fi_mr_unmap_key");
	side_meet(s);
	node_close(s, &s->node);
}

static void raw_target(struct side *s)
{
	struct raw raw = {.size = sizeof(raw.key)};
	uint8_t *mem = mem_new(LEN);
	struct fid_mr *mr;

	open_with(s, "raw", OFFERED, FI_MR_RAW | (OFFERED & BASE_MODE & ~FI_MR_LOCAL));
	side_must(s, fi_mr_reg(s->node.domain, mem, LEN, ACCESS, 0, 0, 0, &mr, NULL),
		  "fi_mr_reg");
	side_check(s, fi_mr_key(mr) == FI_KEY_NOTAVAIL, "a key that isn't raw");
	side_must(s, fi_mr_raw_attr(mr, &raw.base, raw.key, &raw.size, 0),
		  "fi_mr_raw_attr");
	side_check_u64(s, raw.size, s->node.info->domain_attr->mr_key_size, "its size");
	side_tell(s, &raw, sizeof(raw));
	side_meet(s);
	mem_check(s, mem, LEN, 9, "target");
	side_must(s, fi_close(&mr->fid), "fi_close of a region");
	node_close(s, &s->node);
}

/* ---- FI_MR_RMA_EVENT */

static void event_run(struct side *s)
{
	struct initiator in;

	open_with(s, "rma_event", FI_MR_RMA_EVENT, FI_MR_RMA_EVENT);
	here_open(&in);
	side_hear(s, &in.remote, sizeof(in.remote));
	all_refused(s, &in, "not enabled");
	side_meet(s);
	side_hear(s, &in.remote, sizeof(in.remote));
	all_done(s, &in);
	side_meet(s);
	node_close(s, &s->node);
}

static void event_target(struct side *s)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP,
				    .wait_obj = FI_WAIT_UNSPEC};
	struct answer a = {.key = 5};
	uint8_t *mem = mem_new(LEN);
	struct fid_cntr *cntr;
	struct fid_mr *mr;

	open_with(s, "rma_event", OFFERED & ~BASE_MODE, FI_MR_RMA_EVENT);
	side_must(s, fi_cntr_open(s->node.domain, &attr, &cntr, NULL), "fi_cntr_open");
	side_must(s,
		  fi_mr_reg(s->node.domain, mem, LEN, ACCESS, 0, 5, FI_RMA_EVENT, &mr,
			    NULL),
		  "fi_mr_reg");
	side_must(s, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_WRITE), "fi_mr_bind");
	side_tell(s, &a, sizeof(a));
	side_meet(s);
	side_check_u64(s, fi_cntr_read(cntr), 0, "what was refused");
	side_must(s, fi_mr_enable(mr), "fi_mr_enable");
	side_check(s, fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ) == -FI_EOPBADSTATE,
		   "a counter for a region that is enabled");
	side_tell(s, &a, sizeof(a));
	side_must(s, fi_cntr_wait(cntr, 2, WAIT_MS), "two writes");
	side_meet(s);
	side_check_u64(s, fi_cntr_read(cntr), 2, "writes");
	side_must(s, fi_close(&mr->fid), "fi_close of a region");
	side_must(s, fi_close(&cntr->fid), "fi_close of a counter");
	node_close(s, &s->node);
}

/* ---- fi_getinfo */

static int info_mode(struct side *s, uint64_t caps, int offered, int *mode)
{
	struct want want = {.caps = caps, .mr_mode = offered};
	struct fi_info *hints = node_hints(&want), *info;
	int rc = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, &info);

	(void)s;
	if (!rc) {
		*mode = info->domain_attr->mr_mode;
		fi_freeinfo(info);
	}
	fi_freeinfo(hints);
	return rc;
}

static void asked_run(struct side *s)
{
	const int all = FI_MR_RAW | FI_MR_RMA_EVENT | FI_MR_ENDPOINT;
	int mode;

	demand("all");
	side_check(s, info_mode(s, CAPS, 0, &mode) == -FI_ENODATA, "nothing offered");
	side_check(s, info_mode(s, CAPS, FI_MR_BASIC, &mode) == -FI_ENODATA,
		   "FI_MR_BASIC");
	side_check(s, info_mode(s, CAPS, FI_MR_SCALABLE, &mode) == -FI_ENODATA,
		   "FI_MR_SCALABLE");
	side_check(s, info_mode(s, CAPS, all & ~FI_MR_RAW, &mode) == -FI_ENODATA,
		   "one is missing");
	side_must(s, info_mode(s, CAPS, OFFERED, &mode), "all offered");
	side_check_u64(s, (uint64_t)mode, (uint64_t)all, "all offered");
	side_must(s, info_mode(s, FI_MSG | FI_TAGGED, 0, &mode), "messages only");
	side_check_u64(s, (uint64_t)mode, 0, "messages only");
	side_must(s, info_mode(s, FI_RMA, FI_MR_RAW | FI_MR_ENDPOINT, &mode),
		  "without FI_RMA_EVENT");
	side_check_u64(s, (uint64_t)mode, FI_MR_RAW | FI_MR_ENDPOINT,
		       "without FI_RMA_EVENT");
}

static void unasked_run(struct side *s)
{
	int mode;

	unsetenv("FI_WEFT_MR_DEMAND");
	side_must(s, info_mode(s, CAPS, OFFERED, &mode), "all offered");
	side_check(s, !mode, "0x%x is demanded without need", mode);
}

#define BOTH(fn) .run = {fn, fn}

static const struct test_case cases[] = {
	{.name = "FI_MR_ENDPOINT: not before it is bound and enabled",
	 .run = {endpoint_run, endpoint_target},
	 .needs_weft = true},
	{.name = "FI_MR_RAW: keys as bytes, honest ones and others",
	 .run = {raw_run, raw_target},
	 .needs_weft = true},
	{.name = "FI_MR_RMA_EVENT: counters before it is enabled",
	 .run = {event_run, event_target},
	 .needs_weft = true},
	{.name = "what fi_getinfo demands when told to",
	 BOTH(asked_run),
	 .needs_weft = true},
	{.name = "and that it demands nothing else",
	 BOTH(unasked_run),
	 .needs_weft = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
