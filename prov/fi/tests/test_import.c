/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues and counters of another provider (FI_PEER), whose part is played here: what
 * happens is told to their owner in order, whether it takes it at once or not. */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/fi/import.h"
#include "prov/fi/tests/fi_test.h"
#include "util/tap.h"

static struct env env;

#ifdef HAVE_STRUCT_FI_PEER_MATCH_ATTR
#include <rdma/providers/fi_peer.h>

#define SEEN_MAX 64

/* ---- the owner */

static struct seen {
	void *context;
	uint64_t flags, data, tag;
	size_t len, olen;
	fi_addr_t src;
	int err;
} seen[SEEN_MAX];
static int seen_count;
static int unwilling; /* refuses that many */

static ssize_t seen_add(const struct seen *s)
{
	if (unwilling) {
		unwilling--;
		return -FI_EAGAIN;
	}
	if (seen_count < SEEN_MAX)
		seen[seen_count] = *s;
	seen_count++;
	return 0;
}

static ssize_t owner_write(struct fid_peer_cq *cq, void *context, uint64_t flags,
			   size_t len, void *buf, uint64_t data, uint64_t tag,
			   fi_addr_t src)
{
	(void)cq;
	(void)buf;
	return seen_add(&(struct seen){.context = context,
				       .flags = flags,
				       .len = len,
				       .data = data,
				       .tag = tag,
				       .src = src});
}

static ssize_t owner_writeerr(struct fid_peer_cq *cq, const struct fi_cq_err_entry *e)
{
	(void)cq;
	return seen_add(&(struct seen){.context = e->op_context,
				       .flags = e->flags,
				       .len = e->len,
				       .olen = e->olen,
				       .data = e->data,
				       .tag = e->tag,
				       .src = e->src_addr,
				       .err = e->err});
}

static struct fi_ops_cq_owner cq_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = owner_write,
	.writeerr = owner_writeerr,
};
static struct fid_peer_cq peer_cq = {.owner_ops = &cq_ops};

static int incs, inc_errors;

static void owner_inc(struct fid_peer_cntr *cntr)
{
	(void)cntr;
	incs++;
}

static void owner_incerr(struct fid_peer_cntr *cntr)
{
	(void)cntr;
	inc_errors++;
}

static struct fi_ops_cntr_owner cntr_ops = {
	.size = sizeof(struct fi_ops_cntr_owner),
	.inc = owner_inc,
	.incerr = owner_incerr,
};
static struct fid_peer_cntr peer_cntr = {.owner_ops = &cntr_ops};

/* ---- queues */

static int cq_import(void *context, struct fid_cq **cq)
{
	struct fi_cq_attr attr = {.flags = FI_PEER};

	return fi_cq_open(env.domain, &attr, cq, context);
}

static void test_cq_refused(void)
{
	struct fi_peer_cq_context c = {.size = sizeof(c), .cq = &peer_cq};
	struct fi_ops_cq_owner lacking = cq_ops;
	struct fid_cq *cq;

	tap_is_int(cq_import(NULL, &cq), -FI_EINVAL, "no context");
	c.size--;
	tap_is_int(cq_import(&c, &cq), -FI_EINVAL, "a context that is too short");
	c.size++;
	c.cq = NULL;
	tap_is_int(cq_import(&c, &cq), -FI_EINVAL, "nobody's queue");
	c.cq = &peer_cq;
	lacking.writeerr = NULL;
	peer_cq.owner_ops = &lacking;
	tap_is_int(cq_import(&c, &cq), -FI_EINVAL, "an operation is missing");
	peer_cq.owner_ops = &cq_ops;
}

static void fail(struct wfi_cq *cq, uint64_t tag)
{
	const struct wfi_cq_error e = {
		.entry = {.op_context = &env, .flags = FI_RECV, .tag = tag, .src = 5},
		.olen = 11,
		.err = FI_ETRUNC};

	wfi_cq_write_error(cq, &e);
}

static void test_cq(void)
{
	struct fi_peer_cq_context c = {.size = sizeof(c), .cq = &peer_cq};
	struct fi_cq_tagged_entry got;
	struct fi_cq_err_entry err;
	struct engine g;
	struct fid_cq *cq;

	engine_init(&g);
	tap_is_int(cq_import(&c, &cq), 0, "imported");
	g.cq = wfi_cq_of(&cq->fid);
	wfi_cq_attach(g.cq, &g.base);
	engine_post(&g, 2);
	tap_is_int(seen_count, 0, "nothing before progress");
	tap_is_int(fi_cq_read(cq, NULL, 0), 0, "reading nothing is progress");
	tap_is_int(seen_count, 2, "the owner has both");
	tap_ok(seen[0].context == &g && seen[0].flags == (FI_RECV | FI_MSG) &&
		       seen[0].len == 8 && seen[0].data == 0 && seen[0].tag == 7 &&
		       seen[0].src == 3 && seen[1].data == 1,
	       "as they were");
	fail(g.cq, 9);
	tap_ok(seen_count == 3 && seen[2].err == FI_ETRUNC && seen[2].olen == 11 &&
		       seen[2].tag == 9 && seen[2].src == 5 && seen[2].context == &env,
	       "an error");
	tap_is_int(fi_cq_read(cq, &got, 1), -FI_ENOSYS, "it can't be read here");
	tap_is_int(cq->ops->readerr(cq, &err, 0), -FI_ENOSYS, "nor errors");
	tap_is_int(fi_cq_sread(cq, &got, 1, NULL, 0), -FI_ENOSYS, "nor waited for");
	tap_is_int(fi_close(&cq->fid), -FI_EBUSY, "no close while attached");
	wfi_cq_detach(g.cq, &g.base);
	tap_is_int(fi_close(&cq->fid), 0, "close");
	engine_fini(&g);
}

/* The owner has no room for a while: nothing is lost, nothing overtakes. */
static void test_unwilling(void)
{
	struct fi_peer_cq_context c = {.size = sizeof(c), .cq = &peer_cq};
	struct engine g;
	struct fid_cq *cq;
	bool order = true;

	engine_init(&g);
	if (cq_import(&c, &cq))
		tap_bail("no queue");
	g.cq = wfi_cq_of(&cq->fid);
	wfi_cq_attach(g.cq, &g.base);
	seen_count = 0;
	unwilling = 2;
	tap_ok(!wfi_cq_full(g.cq), "there is always room");
	engine_post(&g, 2); /* the first is refused, the second stays behind it */
	fi_cq_read(cq, NULL, 0);
	fail(g.cq, 2);
	tap_is_int(seen_count, 0, "the owner took nothing");
	tap_ok(wfi_cq_full(g.cq), "but when the owner has none");
	fi_cq_read(cq, NULL, 0);
	tap_is_int(seen_count, 0, "it still doesn't");
	engine_post(&g, 1);
	fi_cq_read(cq, NULL, 0);
	for (int i = 0; i < 4 && i < seen_count; i++)
		order &= seen[i].err ? i == 2 : seen[i].data == (uint64_t)(i > 2 ? 2 : i);
	tap_is_int(seen_count, 4, "then it gets all");
	tap_ok(order, "in order, the error in its place");
	tap_ok(!wfi_cq_full(g.cq), "and there is room again");
	unwilling = 1;
	fail(g.cq, 1);
	wfi_cq_detach(g.cq, &g.base);
	tap_is_int(fi_close(&cq->fid), 0, "closing drops what wasn't taken");
	unwilling = 0;
	engine_fini(&g);
}

/* ---- counters */

static int cntr_import(void *context, struct fid_cntr **cntr)
{
	struct fi_cntr_attr attr = {.flags = FI_PEER};

	return fi_cntr_open(env.domain, &attr, cntr, context);
}

static void test_cntr(void)
{
	struct fi_peer_cntr_context c = {.size = sizeof(c), .cntr = &peer_cntr};
	struct engine g;
	struct fid_cntr *cntr;

	tap_is_int(cntr_import(NULL, &cntr), -FI_EINVAL, "no context");
	engine_init(&g);
	tap_is_int(cntr_import(&c, &cntr), 0, "imported");
	g.cntr = g.error_cntr = wfi_cntr_of(&cntr->fid);
	wfi_cntr_attach(g.cntr, &g.base);
	engine_post(&g, 3);
	engine_post_error(&g);
	tap_is_int(incs + inc_errors, 0, "nothing before progress");
	tap_is_int((int64_t)fi_cntr_read(cntr), 0, "reading is progress");
	tap_is_int(incs, 3, "the owner counts");
	tap_is_int(inc_errors, 1, "and errors");
	wfi_cntr_add(g.cntr, 5);
	tap_is_int(incs, 8, "several at once");
	tap_is_int(fi_cntr_set(cntr, 1), -FI_ENOSYS, "it can't be set here");
	tap_is_int(fi_cntr_add(cntr, 1), -FI_ENOSYS, "nor added to");
	tap_is_int(fi_cntr_wait(cntr, 1, 0), -FI_ENOSYS, "nor waited for");
	tap_ok(!wfi_cntr_with_value(&cntr->fid), "nothing can be triggered by it");
	tap_is_int(incs, 8, "the owner heard of none of that");
	wfi_cntr_detach(g.cntr, &g.base);
	tap_is_int(fi_close(&cntr->fid), 0, "close");
	engine_fini(&g);
}

int main(void)
{
	env_open(&env, &(struct env_want){0});
	tap_ok(wfi_import_can(), "this libfabric is the one that it was built with");
	test_cq_refused();
	test_cq();
	test_unwilling();
	test_cntr();
	env_close(&env);
	return tap_done();
}

#else

/* Whatever the context is, nobody looks at it. */
int main(void)
{
	struct fi_cq_attr attr = {.flags = FI_PEER};
	struct fi_cntr_attr cntr_attr = {.flags = FI_PEER};
	struct fid_cntr *cntr;
	struct fid_cq *cq;

	env_open(&env, &(struct env_want){0});
	tap_ok(!wfi_import_can(), "no peer interface");
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, &env), -FI_EINVAL, "a queue");
	tap_is_int(fi_cntr_open(env.domain, &cntr_attr, &cntr, &env), -FI_EINVAL,
		   "a counter");
	env_close(&env);
	return tap_done();
}

#endif
