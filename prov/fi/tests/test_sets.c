/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll sets and wait sets: who has something is named, also when it appears while
 * somebody sleeps; members and sets keep each other open; what can't work is refused. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "prov/fi/tests/fi_test.h"
#include "prov/fi/wait.h"
#include "util/tap.h"

#define LONG_MS 20000

static struct env env;

/* A queue or counter with an engine that fills it. */
struct member {
	struct engine engine;
	struct wfi_domain *domain;
	struct fid *fid;
};

static void member_init(struct member *m, struct fid_domain *domain)
{
	engine_init(&m->engine);
	m->domain = wfi_domain_of(domain);
}

static int try_cq(struct member *m, struct fid_domain *domain, struct fid_wait *set,
		  void *context)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA,
				  .wait_obj = set ? FI_WAIT_SET : FI_WAIT_NONE,
				  .wait_set = set};
	struct fid_cq *cq;
	int rc = fi_cq_open(domain, &attr, &cq, context);

	if (rc)
		return rc;
	member_init(m, domain);
	m->fid = &cq->fid;
	m->engine.cq = wfi_cq_of(m->fid);
	wfi_domain_lock(m->domain);
	wfi_cq_attach(m->engine.cq, &m->engine.base);
	wfi_domain_unlock(m->domain);
	return 0;
}

static void add_cq(struct member *m, struct fid_domain *domain, struct fid_wait *set,
		   void *context)
{
	if (try_cq(m, domain, set, context))
		tap_bail("no queue");
}

static void add_cntr(struct member *m, struct fid_domain *domain, struct fid_wait *set,
		     void *context)
{
	struct fi_cntr_attr attr = {.wait_obj = set ? FI_WAIT_SET : FI_WAIT_NONE,
				    .wait_set = set};
	struct fid_cntr *cntr;

	if (fi_cntr_open(domain, &attr, &cntr, context))
		tap_bail("no counter");
	member_init(m, domain);
	m->fid = &cntr->fid;
	m->engine.cntr = m->engine.error_cntr = wfi_cntr_of(m->fid);
	wfi_domain_lock(m->domain);
	wfi_cntr_attach(m->engine.cntr, &m->engine.base);
	wfi_domain_unlock(m->domain);
}

static void member_detach(struct member *m)
{
	wfi_domain_lock(m->domain);
	if (m->engine.cq)
		wfi_cq_detach(m->engine.cq, &m->engine.base);
	else
		wfi_cntr_detach(m->engine.cntr, &m->engine.base);
	wfi_domain_unlock(m->domain);
}

static void member_close(struct member *m)
{
	member_detach(m);
	tap_is_int(fi_close(m->fid), 0, "a member closes");
	engine_fini(&m->engine);
}

static ssize_t read_one(struct member *m)
{
	struct fi_cq_data_entry got;

	return fi_cq_read((struct fid_cq *)m->fid, &got, 1);
}

/* ---- poll sets
 * ------------------------------------------------------------------------- */

static void test_poll(void)
{
	struct fi_poll_attr attr = {.flags = FI_MORE};
	struct fi_eq_attr eq_attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_NONE};
	struct member cq, cntr;
	struct fid_poll *set;
	struct fid_eq *eq;
	void *got[4];

	tap_is_int(fi_poll_open(env.domain, &attr, &set), -FI_EBADFLAGS, "no flags");
	attr.flags = 0;
	tap_is_int(fi_poll_open(env.domain, &attr, &set), 0, "a poll set");
	add_cq(&cq, env.domain, NULL, &cq);
	add_cntr(&cntr, env.domain, NULL, &cntr);
	fi_eq_open(env.fabric, &eq_attr, &eq, &eq);
	tap_is_int(fi_poll(set, got, 4), 0, "empty: nothing");
	tap_is_int(fi_poll_add(set, &env.domain->fid, 0), -FI_EINVAL, "no domains");
	tap_is_int(fi_poll_add(set, cq.fid, FI_MORE), -FI_EBADFLAGS, "no flags");
	tap_is_int(fi_poll_add(set, cq.fid, 0), 0, "a queue");
	tap_is_int(fi_poll_add(set, cq.fid, 0), 0, "again");
	tap_is_int(fi_poll_add(set, cntr.fid, 0), 0, "a counter");
	tap_is_int(fi_poll_add(set, &eq->fid, 0), 0, "an event queue");
	tap_is_int(fi_poll(set, got, 4), 0, "nothing new");

	engine_post_quietly(&cq.engine, 2);
	tap_is_int(fi_poll(set, got, 0), 0, "no room: progress only");
	tap_ok(cq.engine.polls > 0 && cq.engine.pending == 0, "there was progress");
	tap_is_int(fi_poll(set, got, 4), 1, "one has something");
	tap_ok(got[0] == &cq, "the queue");
	tap_is_int(fi_poll(set, got, 4), 1, "still");
	read_one(&cq);
	tap_is_int(fi_poll(set, got, 4), 1, "and with one entry left");
	read_one(&cq);
	tap_is_int(fi_poll(set, got, 4), 0, "all were read");

	engine_post_quietly(&cntr.engine, 3);
	tap_is_int(fi_poll(set, got, 4), 1, "one has something");
	tap_ok(got[0] == &cntr, "the counter");
	tap_is_int(fi_poll(set, got, 4), 0, "a change is told once");
	fi_cntr_add((struct fid_cntr *)cntr.fid, 5);
	fi_cntr_set((struct fid_cntr *)cntr.fid, 1);
	tap_is_int(fi_poll(set, got, 4), 0, "the application's own changes are not");
	engine_post_quietly(&cntr.engine, 1);
	fi_cntr_add((struct fid_cntr *)cntr.fid, 5);
	fi_cntr_read((struct fid_cntr *)cntr.fid);
	tap_is_int(fi_poll(set, got, 4), 1, "others are, also when they were read");
	engine_post_error(&cntr.engine);
	tap_is_int(fi_poll(set, got, 4), 1, "errors too");

	fi_eq_write(eq, FI_NOTIFY, "x", 1, 0);
	engine_post_quietly(&cq.engine, 1);
	engine_post_quietly(&cntr.engine, 1);
	tap_is_int(fi_poll(set, got, 4), 3, "all three");
	engine_post_quietly(&cntr.engine, 1);
	tap_is_int(fi_poll(set, &got[0], 1) + fi_poll(set, &got[1], 1) +
			   fi_poll(set, &got[2], 1),
		   3, "one at a time");
	tap_ok(got[0] != got[1] && got[1] != got[2] && got[0] != got[2],
	       "each gets its turn");

	member_detach(&cq);
	tap_is_int(fi_close(cq.fid), -FI_EBUSY, "a member can't be closed");
	tap_is_int(fi_close(&eq->fid), -FI_EBUSY, "nor an event queue");
	tap_is_int(fi_poll_del(set, cq.fid, 0), 0, "taken out");
	tap_is_int(fi_poll_del(set, cq.fid, 0), -FI_EINVAL, "it is not there any more");
	tap_is_int(fi_close(cq.fid), 0, "it can be closed");
	engine_fini(&cq.engine);
	tap_is_int(fi_close(&env.domain->fid), -FI_EBUSY, "the domain is in use");
	tap_is_int(fi_close(&set->fid), 0, "the set closes");
	tap_is_int(fi_close(&eq->fid), 0, "and frees its members");
	member_close(&cntr);
}

/* ---- wait sets
 * ------------------------------------------------------------------------- */

static struct fid_wait *set_open(enum fi_wait_obj obj)
{
	struct fi_wait_attr attr = {.wait_obj = obj};
	struct fid_wait *set;

	if (fi_wait_open(env.fabric, &attr, &set))
		tap_bail("no wait set");
	return set;
}

static void test_wait_refusals(void)
{
	struct fi_wait_attr attr = {.wait_obj = FI_WAIT_SET};
	struct fid_wait *set = set_open(FI_WAIT_UNSPEC);
	struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_SET};
	struct fi_wait_pollfd pollfd = {0};
	struct fid_wait *bad;
	struct fid_eq *eq;
	struct member m;
	int fd;

	tap_is_int(fi_wait_open(env.fabric, &attr, &bad), -FI_EINVAL, "no set in a set");
	attr = (struct fi_wait_attr){.wait_obj = FI_WAIT_FD, .flags = 1};
	tap_is_int(fi_wait_open(env.fabric, &attr, &bad), -FI_EBADFLAGS, "no flags");
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &fd), -FI_ENODATA,
		   "unspec: nothing to get");
	tap_is_int(try_cq(&m, env.domain, (struct fid_wait *)env.domain, NULL),
		   -FI_EINVAL, "a domain is no wait set");
	tap_is_int(fi_eq_open(env.fabric, &eq_attr, &eq, NULL), -FI_EINVAL,
		   "no wait set given");
	add_cq(&m, env.domain, set, NULL);
	tap_is_int(fi_close(&set->fid), -FI_EBUSY, "a set with members stays");
	member_close(&m);
	tap_is_int(fi_close(&set->fid), 0, "without them it closes");

	set = set_open(FI_WAIT_POLLFD);
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &pollfd), -FI_ETOOSMALL, "no room");
	tap_is_int((int)pollfd.nfds, 1, "one is needed");
	pollfd.fd = &(struct pollfd){0};
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &pollfd), 0, "with room");
	tap_ok(pollfd.fd->fd >= 0 && pollfd.fd->events == POLLIN, "to poll on");
	tap_is_int(fi_close(&set->fid), 0, "close");
}

static void post_one(void *arg)
{
	engine_post(arg, 1);
}

static void test_wait(enum fi_wait_obj obj, const char *what)
{
	struct fid_wait *set = set_open(obj);
	struct fi_eq_attr eq_attr = {
		.flags = FI_WRITE, .wait_obj = FI_WAIT_SET, .wait_set = set};
	struct member cq, cntr;
	struct fid_domain *other;
	uint64_t start = wfi_now_ns();
	enum fi_wait_obj got;
	struct fid_eq *eq;
	struct later l;
	char buf[8];
	uint32_t event;

	if (fi_domain(env.fabric, env.info, &other, NULL))
		tap_bail("no second domain");
	add_cq(&cq, env.domain, set, NULL);
	add_cntr(&cntr, other, set, NULL);
	tap_ok(fi_eq_open(env.fabric, &eq_attr, &eq, NULL) == 0, "%s: members", what);
	tap_ok(!fi_control(cq.fid, FI_GETWAITOBJ, &got) && got == obj,
	       "what is under a queue is what is under its set");
	tap_is_int(fi_wait(set, 30), -FI_ETIMEDOUT, "nothing comes");
	tap_ok(wfi_now_ns() - start >= 29000000, "for 30 ms");

	later_start(&l, 30, post_one, &cq.engine);
	tap_is_int(fi_wait(set, LONG_MS), 0, "a completion ends it");
	later_join(&l);
	tap_is_int(fi_wait(set, LONG_MS), 0, "until it is read");
	tap_is_int((int)read_one(&cq), 1, "it is there");
	tap_is_int(fi_wait(set, 10), -FI_ETIMEDOUT, "no longer");

	later_start(&l, 30, post_one, &cntr.engine);
	tap_is_int(fi_wait(set, LONG_MS), 0, "a count of another domain ends it");
	later_join(&l);
	tap_is_int((int)fi_cntr_read((struct fid_cntr *)cntr.fid), 1, "it is there");
	tap_is_int(fi_wait(set, 10), -FI_ETIMEDOUT, "no longer");

	fi_eq_write(eq, FI_NOTIFY, "x", 1, 0);
	tap_is_int(fi_wait(set, LONG_MS), 0, "an event ends it");
	fi_eq_read(eq, &event, buf, sizeof(buf), 0);
	tap_is_int(fi_wait(set, 10), -FI_ETIMEDOUT, "no longer");

	fi_cq_signal((struct fid_cq *)cq.fid);
	tap_is_int(fi_wait(set, LONG_MS), 0, "fi_cq_signal ends it");
	atomic_store(&cq.engine.due, wfi_now_ns() + 30000000);
	tap_is_int(fi_wait(set, LONG_MS), 0, "what is due by the clock ends it");
	read_one(&cq);

	member_close(&cq);
	member_close(&cntr);
	tap_is_int(fi_close(&eq->fid), 0, "an event queue closes");
	tap_is_int(fi_close(&set->fid), 0, "the set closes");
	tap_is_int(fi_close(&other->fid), 0, "the other domain closes");
}

/* The application sleeps on the descriptor itself. */
static void test_descriptor(void)
{
	struct fid_wait *set = set_open(FI_WAIT_FD);
	struct pollfd p = {.events = POLLIN}, of_cq = {0};
	struct fid *fids[] = {&set->fid};
	struct member cq[2];
	struct later l;

	add_cq(&cq[0], env.domain, set, NULL);
	add_cq(&cq[1], env.domain, set, NULL);
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &p.fd), 0, "the set's descriptor");
	tap_is_int(fi_control(cq[0].fid, FI_GETWAIT, &of_cq.fd), 0, "a member's");
	tap_is_int(of_cq.fd, p.fd, "is the same");
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "trywait: sleep");
	tap_is_int(poll(&p, 1, 20), 0, "not readable");
	for (int i = 0; i < 20; i++) {
		struct member *m = &cq[i % 2];
		int rc;

		later_start(&l, i % 3, post_one, &m->engine);
		while (!(rc = fi_trywait(env.fabric, fids, 1)))
			if (poll(&p, 1, LONG_MS) != 1)
				tap_bail("no wake-up");
		if (rc != -FI_EAGAIN || read_one(m) != 1)
			tap_bail("trywait %d, and nothing there", rc);
		later_join(&l);
	}
	tap_ok(true, "whoever wakes the descriptor has something");
	member_close(&cq[0]);
	tap_is_int(fi_trywait(env.fabric, fids, 1), 0, "one member less");
	later_start(&l, 10, post_one, &cq[1].engine);
	tap_is_int(poll(&p, 1, LONG_MS), 1, "the other still wakes it");
	later_join(&l);
	member_close(&cq[1]);
	tap_is_int(fi_close(&set->fid), 0, "the set closes");
}

/* ---- a set with a condition
 * ------------------------------------------------------------ */

static void test_cond_manual(void)
{
	struct fid_wait *set = set_open(FI_WAIT_MUTEX_COND);
	struct fi_mutex_cond mc = {0};
	struct member m;
	struct later l;

	add_cq(&m, env.domain, set, NULL);
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &mc), -FI_EOPNOTSUPP,
		   "a member with manual progress: no condition to wait on");
	later_start(&l, 20, post_one, &m.engine);
	tap_is_int(fi_wait(set, LONG_MS), 0, "but fi_wait works");
	later_join(&l);
	member_close(&m);
	tap_is_int(fi_control(&set->fid, FI_GETWAIT, &mc), 0, "without it there is one");
	tap_is_int(try_cq(&m, env.domain, set, NULL), -FI_EOPNOTSUPP,
		   "and it can't come back");
	tap_is_int(fi_close(&set->fid), 0, "close");
}

static void test_cond_auto(void)
{
	struct fid_wait *set = set_open(FI_WAIT_MUTEX_COND);
	struct fi_mutex_cond mc = {0};
	struct member m[2];
	struct timespec until;
	int missing = 0;

	add_cq(&m[0], env.domain, set, NULL);
	add_cq(&m[1], env.domain, set, NULL);
	tap_is_int(fi_control(m[1].fid, FI_GETWAIT, &mc), 0, "the set's condition");
	for (int i = 0; i < 200; i++) {
		struct later l;
		int rc = 0;

		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += 60;
		later_start(&l, i % 2, post_one, &m[i % 2].engine);
		pthread_mutex_lock(mc.mutex);
		while (read_one(&m[i % 2]) != 1 && !rc)
			rc = pthread_cond_timedwait(mc.cond, mc.mutex, &until);
		pthread_mutex_unlock(mc.mutex);
		missing += rc != 0;
		later_join(&l);
	}
	tap_is_int(missing, 0, "its waiter misses nothing of either member");
	member_close(&m[0]);
	member_close(&m[1]);
	tap_is_int(fi_close(&set->fid), 0, "close");
}

static bool set_sleeps(struct stop *s)
{
	struct fid_wait *set;
	struct member m;

	env_open(&env, &(struct env_want){.threading = FI_THREAD_SAFE});
	set = set_open(FI_WAIT_UNSPEC);
	add_cq(&m, env.domain, set, NULL);
	stop_soon(s, &m.engine);
	return fi_wait(set, LONG_MS) == 0 && read_one(&m) == 1;
}

int main(void)
{
	static const struct env_want manual = {.threading = FI_THREAD_SAFE};
	static const struct env_want automatic = {.threading = FI_THREAD_SAFE,
						  .progress = FI_PROGRESS_AUTO};

	tap_ok(stop_while(set_sleeps), "a process that is stopped sleeps on after it");
	env_open(&env, &manual);
	test_poll();
	test_wait_refusals();
	test_wait(FI_WAIT_UNSPEC, "any object");
	test_wait(FI_WAIT_FD, "descriptor");
	test_wait(FI_WAIT_YIELD, "yield");
	test_descriptor();
	test_cond_manual();
	env_close(&env);
	env_open(&env, &automatic);
	test_cond_auto();
	test_wait(FI_WAIT_MUTEX_COND, "condition");
	env_close(&env);
	return tap_done();
}
