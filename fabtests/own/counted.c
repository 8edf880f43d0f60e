/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FI_RMA_EVENT: counters of the target, of its endpoint and of its regions, hear of each
 * read and write of a peer exactly once, also when the target looks only much later, and
 * of nothing else.
 *
 * Role 0 reads and writes, role 1 counts.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <stdlib.h>

#define REGIONS 3
#define LEN	4096

/* More than packets find room for; less where each access wakes a thread. */
static int many(void)
{
	return getenv("FI_WEFT_CMA") ? 400 : 3000;
}

struct plan {
	struct want want;
	bool regions; /* count for regions as well */
};

/* The regions as RMA names them. */
struct named {
	uint64_t key[REGIONS], base[REGIONS];
};

#define MODE (FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED)

static const struct plan plans[] = {
	{.want = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT,
		  .mr_mode = MODE,
		  .remote_counters = true},
	 .regions = true},
	{.want = {.caps = FI_MSG | FI_RMA | FI_RMA_EVENT, .remote_counters = true}},
	{.want = {.caps = FI_MSG | FI_RMA, .mr_mode = MODE}, .regions = true},
};

/* ---- the initiator */

static void done_wait(struct side *s, int n)
{
	struct done d;

	while (n-- > 0) {
		if (!node_next(s, &d, WAIT_MS) || d.err)
			side_die(s, "an access failed or never ended: %s",
				 fi_strerror(d.err));
	}
}

static void access_one(struct side *s, const struct named *r, int region, bool write,
		       uint8_t *buf, size_t len)
{
	struct node *n = &s->node;

	while (node_again(s,
			  write ? fi_write(n->ep, buf, len, NULL, n->peer,
					   r->base[region], r->key[region], buf)
				: fi_read(n->ep, buf, len, NULL, n->peer, r->base[region],
					  r->key[region], buf),
			  "access"))
		;
}

/* Pieces in two regions, and two in one of them. */
static void access_pieces(struct side *s, const struct named *r, uint8_t *buf)
{
	struct iovec iov = {buf, 24};
	struct fi_rma_iov remote[3] = {{r->base[0], 8, r->key[0]},
				       {r->base[1], 8, r->key[1]},
				       {r->base[0] + 64, 8, r->key[0]}};
	struct fi_msg_rma msg = {.msg_iov = &iov,
				 .iov_count = 1,
				 .addr = s->node.peer,
				 .rma_iov = remote,
				 .rma_iov_count = 3,
				 .context = buf};

	while (node_again(s, fi_writemsg(s->node.ep, &msg, FI_COMPLETION), "fi_writemsg"))
		;
	done_wait(s, 1);
}

static void initiator_run(struct side *s)
{
	const struct plan *p = s->arg;
	uint8_t *buf = mem_new(LEN);
	struct named r;

	node_open(s, &p->want);
	side_hear(s, &r, sizeof(r));
	for (int i = 0; i < REGIONS; i++) {
		for (int k = 0; k <= i; k++)
			access_one(s, &r, i, true, buf, k ? LEN : 8);
		access_one(s, &r, i, false, buf, 8);
		done_wait(s, i + 2);
	}
	while (node_again(
		s, fi_inject_write(s->node.ep, buf, 8, s->node.peer, r.base[0], r.key[0]),
		"fi_inject_write"))
		;
	while (node_again(s,
			  fi_writedata(s->node.ep, buf, 8, NULL, 7, s->node.peer,
				       r.base[1], r.key[1], buf),
			  "fi_writedata"))
		;
	done_wait(s, 1);
	access_pieces(s, &r, buf);
	/* One that is refused counts for nobody. */
	while (node_again(s,
			  fi_write(s->node.ep, buf, 8, NULL, s->node.peer,
				   r.base[0] + LEN, r.key[0], buf),
			  "fi_write"))
		;
	{
		struct done d;

		side_check(s, node_next(s, &d, WAIT_MS) && d.err, "a bad write");
	}
	side_meet(s);
	/* The target makes no call until all of these are complete. */
	for (int i = 0; i < many(); i++) {
		access_one(s, &r, i % REGIONS, i % 2, buf, 8);
		done_wait(s, 1);
	}
	side_tell(s, &r, 1);
	side_meet(s);
	node_close(s, &s->node);
	mem_free(buf, LEN);
}

/* ---- the target */

struct target {
	uint8_t *mem[REGIONS];
	struct fid_mr *mr[REGIONS];
	struct fid_cntr *writes[REGIONS], *reads[REGIONS];
};

static void region_open(struct side *s, const struct plan *p, struct target *t, int i,
			struct named *r)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct node *n = &s->node;

	t->mem[i] = mem_new(LEN);
	side_must(s,
		  fi_mr_reg(n->domain, t->mem[i], LEN, FI_REMOTE_READ | FI_REMOTE_WRITE,
			    0, 100 + (uint64_t)i, 0, &t->mr[i], NULL),
		  "fi_mr_reg");
	r->key[i] = fi_mr_key(t->mr[i]);
	r->base[i] = n->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR
			     ? (uintptr_t)t->mem[i]
			     : 0;
	if (!p->regions)
		return;
	side_must(s, fi_cntr_open(n->domain, &attr, &t->writes[i], NULL), "fi_cntr_open");
	side_must(s, fi_cntr_open(n->domain, &attr, &t->reads[i], NULL), "fi_cntr_open");
	side_must(s, fi_mr_bind(t->mr[i], &t->writes[i]->fid, FI_REMOTE_WRITE),
		  "fi_mr_bind");
	side_must(s, fi_mr_bind(t->mr[i], &t->reads[i]->fid, FI_REMOTE_READ),
		  "fi_mr_bind");
	side_check(s, fi_mr_bind(t->mr[i], &t->reads[i]->fid, FI_REMOTE_READ) != 0,
		   "a second counter was taken");
	side_must(s, fi_mr_enable(t->mr[i]), "fi_mr_enable");
	side_check(s, fi_close(&t->reads[i]->fid) == -FI_EBUSY,
		   "a counter closes that a region uses");
}

/* Reaches the value, and does not go on. NULL: there is none. */
static void counter_check(struct side *s, struct fid_cntr *cntr, uint64_t want,
			  const char *what)
{
	if (!cntr)
		return;
	side_check(s, fi_cntr_wait(cntr, want, WAIT_MS) == 0, "%s: %u of %u", what,
		   (unsigned)fi_cntr_read(cntr), (unsigned)want);
	sleep_ms(5);
	side_check_u64(s, fi_cntr_read(cntr), want, what);
}

static void target_run(struct side *s)
{
	/* By region: 1 + inject + pieces, 2 + data + pieces, 3. */
	static const uint64_t writes[REGIONS] = {3, 4, 3};
	const struct plan *p = s->arg;
	struct target t = {0};
	struct named r;
	struct done d;
	uint8_t go;

	node_open(s, &p->want);
	for (int i = 0; i < REGIONS; i++)
		region_open(s, p, &t, i, &r);
	side_tell(s, &r, sizeof(r));
	/* All of them for the endpoint: 1 + 2 + 3, inject, data, pieces. */
	counter_check(s, s->node.write_cntr, 9, "writes");
	counter_check(s, s->node.read_cntr, REGIONS, "reads");
	for (int i = 0; i < REGIONS; i++) {
		counter_check(s, t.writes[i], writes[i], "writes of a region");
		counter_check(s, t.reads[i], 1, "reads of a region");
	}
	node_expect(s, &d, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, NULL);
	side_meet(s);
	side_hear_passive(s, &go, 1);
	counter_check(s, s->node.write_cntr, 9 + (uint64_t)many() / 2, "writes, later");
	counter_check(s, s->node.read_cntr, REGIONS + (uint64_t)many() / 2,
		      "reads, later");
	for (int i = 0; i < REGIONS; i++) {
		uint64_t w = writes[i], n = 1;

		for (int k = i; k < many(); k += REGIONS) {
			w += k % 2;
			n += 1 - k % 2;
		}
		counter_check(s, t.writes[i], w, "writes of a region, later");
		counter_check(s, t.reads[i], n, "reads of a region, later");
	}
	node_quiet(s, 10);
	side_meet(s);
	for (int i = 0; i < REGIONS; i++) {
		side_must(s, fi_close(&t.mr[i]->fid), "fi_close of a region");
		if (p->regions) {
			side_must(s, fi_close(&t.writes[i]->fid),
				  "fi_close of a counter");
			side_must(s, fi_close(&t.reads[i]->fid), "fi_close of a counter");
		}
		mem_free(t.mem[i], LEN);
	}
	node_close(s, &s->node);
}

static const struct test_case cases[] = {
	{.name = "counters of the endpoint and of regions",
	 .run = {initiator_run, target_run},
	 .arg = &plans[0]},
	{.name = "counters of the endpoint",
	 .run = {initiator_run, target_run},
	 .arg = &plans[1]},
	{.name = "counters of regions",
	 .run = {initiator_run, target_run},
	 .arg = &plans[2]},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	if (!test_is_weft())
		return test_done();
	setenv("FI_WEFT_CMA", "0", 1);
	cases_run(cases, ARRAY_LEN(cases), ", FI_WEFT_CMA=0");
	return test_done();
}
