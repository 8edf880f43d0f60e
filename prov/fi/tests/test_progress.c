/* SPDX-License-Identifier: BSD-2-Clause */
/* Threading levels and automatic progress: things happen without a call, and cost nothing
 * while nothing happens. */
#include "config.h"

#include <sys/resource.h>

#include <rdma/fi_errno.h>

#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/tap.h"

static int64_t cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static void test_lock(void)
{
	static const struct {
		enum fi_threading threading;
		enum fi_progress progress;
		bool lock;
	} rows[] = {
		{FI_THREAD_UNSPEC, FI_PROGRESS_MANUAL, true},
		{FI_THREAD_SAFE, FI_PROGRESS_MANUAL, true},
		{FI_THREAD_FID, FI_PROGRESS_MANUAL, true},
		{FI_THREAD_ENDPOINT, FI_PROGRESS_MANUAL, true},
		{FI_THREAD_COMPLETION, FI_PROGRESS_MANUAL, true},
		{FI_THREAD_DOMAIN, FI_PROGRESS_MANUAL, false},
		{FI_THREAD_DOMAIN, FI_PROGRESS_AUTO, true},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct env e;

		env_open(&e, &(struct env_want){.threading = rows[i].threading,
						.progress = rows[i].progress});
		tap_is_int(wfi_domain_of(e.domain)->lock_needed, rows[i].lock,
			   "lock by threading level");
		tap_is_int(wfi_domain_of(e.domain)->progress != NULL,
			   rows[i].progress == FI_PROGRESS_AUTO, "thread by progress");
		env_close(&e);
	}
}

static bool soon(struct engine *g, int left)
{
	for (int i = 0; i < 2000 && atomic_load(&g->pending) != left; i++)
		sleep_ms(5);
	return atomic_load(&g->pending) == left;
}

/* A while without a poll and without processor time. The thread may be late to its sleep
 * on a loaded machine; one that polls does so in every while. */
static bool rests(struct engine *g)
{
	for (int i = 0; i < 20; i++) {
		int polls = atomic_load(&g->polls);
		int64_t cpu = cpu_ms();

		sleep_ms(300);
		if (atomic_load(&g->polls) == polls && cpu_ms() - cpu < 100)
			return true;
	}
	return false;
}

static void test_auto(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA};
	struct fi_cntr_attr cntr_attr = {0};
	struct fi_cq_data_entry got[4];
	struct fid_cntr *cntr;
	struct fid_cq *cq;
	struct engine g;
	struct env e;
	uint64_t count;
	int polls;

	env_open(&e, &(struct env_want){.threading = FI_THREAD_DOMAIN,
					.progress = FI_PROGRESS_AUTO});
	engine_init(&g);
	fi_cq_open(e.domain, &attr, &cq, NULL);
	fi_cntr_open(e.domain, &cntr_attr, &cntr, NULL);
	g.cq = wfi_cq_of(&cq->fid);
	g.cntr = wfi_cntr_of(&cntr->fid);
	wfi_domain_lock(wfi_domain_of(e.domain));
	tap_is_int(wfi_cq_attach(g.cq, &g.base), 0, "attach to a queue");
	tap_is_int(wfi_cntr_attach(g.cntr, &g.base), 0, "and a counter");
	wfi_domain_unlock(wfi_domain_of(e.domain));
	engine_post(&g, 2);
	tap_ok(soon(&g, 0), "delivered without a call");
	tap_ok(rests(&g), "no polling and no processor time while nothing happens");
	engine_post(&g, 1);
	tap_ok(soon(&g, 0), "awake again");
	tap_is_int(fi_cq_sread(cq, got, 3, NULL, 1000), 3, "the application reads");
	engine_post(&g, 1);
	tap_is_int(fi_cntr_wait(cntr, 4, 5000), 0, "a waiter beside the thread");
	/* What is due by the clock may be there before the read, on a busy machine. */
	atomic_store(&g.due, wfi_now_ns() + 20000000);
	count = fi_cntr_read(cntr);
	tap_ok(count == 4 || (count == 5 && atomic_load(&g.due) == UINT64_MAX),
	       "a read disarms and arms again");
	wfi_domain_lock(wfi_domain_of(e.domain));
	wfi_cq_detach(g.cq, &g.base);
	wfi_cntr_detach(g.cntr, &g.base);
	wfi_domain_unlock(wfi_domain_of(e.domain));
	polls = atomic_load(&g.polls);
	engine_post(&g, 1);
	sleep_ms(50);
	tap_is_int(atomic_load(&g.polls), polls, "detached: no longer driven");
	fi_close(&cq->fid);
	fi_close(&cntr->fid);
	env_close(&e);
	engine_fini(&g);
}

int main(void)
{
	test_lock();
	test_auto();
	return tap_done();
}
