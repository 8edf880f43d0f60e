/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that fork while they use the provider: whatever a child does with what it
 * inherited, its parent goes on, and what it holds stays the same. And objects that are
 * opened and closed again and again.
 *
 * --count N domains, a tenth of that of children and a hundredth of exits (the short form
 * of make check otherwise).
 */
#include "config.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/own/remote.h"
#include "fabtests/own/soak.h"
#include "util/tap.h"
#include "weft/weft_fi.h"

#define DOMAINS_SHORT 100
#define CHILD_MS      (2 * WAIT_MS)
#define REGION	      (64u << 10)
#define TAG	      5

/* What may be more at the end than after the warm-up. A wire that lives through all
 * rounds keeps as many buffers as it ever needed at once, and acknowledgements that come
 * later make that some more: there the margin is wider, over as many more rounds, so that
 * what is lost in each is seen as well. */
#define HEAP_MORE  16384
#define KEPT_TIMES 4
#define PAGES_MORE 256 /* KiB: a page per round is more */

static const struct want want_all = {.caps = FI_MSG | FI_TAGGED | FI_RMA,
				     .mr_mode = FI_MR_VIRT_ADDR | FI_MR_PROV_KEY |
						FI_MR_ALLOCATED,
				     .wait_obj = FI_WAIT_UNSPEC};
static const struct want want_auto = {.wait_obj = FI_WAIT_UNSPEC, .automatic = true};

/* A process with everything that a child may get hold of. */
struct parent {
	struct side *s;
	struct weft_fi_mem_ops *ops; /* NULL: another provider */
	uint8_t *shared, *plain;
	struct fid_mr *mr[2];
	struct fid_ep *alias;  /* of the first's; NULL: another provider */
	struct fid_poll *poll; /* of the first's queue; NULL: another provider */
	struct side second;    /* another endpoint: what the first one talks to */
	struct side third;     /* a domain with a thread of its own */
	uint32_t round;
};

enum child_kind {
	CHILD_CLOSES, /* everything that it inherited */
	CHILD_TALKS,  /* by an endpoint of its own, to its parent */
	CHILD_LEAVES, /* exits by exit() */
	CHILD_KILLED, /* while its parent goes on */
	CHILD_POSTS,  /* misuse: sends and reads by what it inherited */
	CHILD_EXECS,  /* another program, which finds no descriptor */
	CHILDREN
};

static const char *const child_names[CHILDREN] = {
	"closes what it inherited", "opens an endpoint of its own", "exits", "is killed",
	"uses what it inherited",   "executes another program",
};

/* Descriptors that this program was started with. */
static long inherited;

/* ---- a parent */

static struct fid_mr *region(struct side *s, void *mem, uint64_t key)
{
	struct fid_mr *mr;

	side_must(s,
		  fi_mr_reg(s->node.domain, mem, REGION, FI_REMOTE_READ | FI_REMOTE_WRITE,
			    0, key, 0, &mr, NULL),
		  "fi_mr_reg");
	return mr;
}

static void parent_open(struct side *s, struct parent *p)
{
	struct node *a = &s->node, *b = &p->second.node;
	struct fi_poll_attr poll = {0};

	*p = (struct parent){.s = s, .second = *s, .third = *s};
	node_open_alone(s, a, &want_all);
	node_open_alone(&p->second, b, &want_all);
	node_open_alone(&p->third, &p->third.node, &want_auto);
	side_check(s, fi_av_insert(a->av, b->name, 1, &a->peer, 0, NULL) == 1, "insert");
	side_check(s, fi_av_insert(b->av, a->name, 1, &b->peer, 0, NULL) == 1, "insert");
	p->plain = mem_new(REGION);
	if (fi_open_ops(&a->domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&p->ops, NULL)) {
		p->ops = NULL;
		p->shared = mem_new(REGION);
	} else {
		side_must(s, p->ops->alloc(a->domain, REGION, 0, (void **)&p->shared),
			  "alloc");
	}
	if (fi_ep_alias(a->ep, &p->alias, FI_TRANSMIT))
		p->alias = NULL;
	if (fi_poll_open(a->domain, &poll, &p->poll))
		p->poll = NULL;
	else
		side_must(s, fi_poll_add(p->poll, &a->cq->fid, 0), "fi_poll_add");
	p->mr[0] = region(s, p->plain, 1);
	p->mr[1] = region(s, p->shared, 2);
}

static void parent_close(struct parent *p)
{
	for (int i = 0; i < 2; i++)
		side_must(p->s, fi_close(&p->mr[i]->fid), "fi_close of a registration");
	if (p->ops)
		side_must(p->s, p->ops->free(p->s->node.domain, p->shared), "free");
	if (p->alias)
		side_must(p->s, fi_close(&p->alias->fid), "fi_close of an alias");
	if (p->poll)
		side_must(p->s, fi_close(&p->poll->fid), "fi_close of a poll set");
	node_close(p->s, &p->third.node);
	node_close(p->s, &p->second.node);
	node_close(p->s, &p->s->node);
	p->s->failed += p->second.failed + p->third.failed;
}

static void post(struct side *s, const void *out, size_t len)
{
	while (node_again(s, fi_tsend(s->node.ep, out, len, NULL, s->node.peer, TAG, s),
			  "fi_tsend"))
		;
}

static void await(struct side *s, struct side *other)
{
	const uint64_t end = now_ms() + WAIT_MS;
	struct done d;

	while (!node_next(s, &d, 0)) {
		node_progress(&other->node);
		if (now_ms() > end)
			side_die(s, "no completion");
	}
	side_check(s, d.err == 0, "completion: %s", fi_strerror(d.err));
}

/* Messages each way: from the first to the second they were sent before the child was
 * there, and are read now. */
static void parent_talks(struct parent *p, const uint8_t *out)
{
	struct side *a = p->s, *b = &p->second;
	uint8_t in[256];

	await(a, b);
	for (int i = 0; i < 2; i++) {
		memset(in, 0, sizeof(in));
		while (node_again(b,
				  fi_trecv(b->node.ep, in, sizeof(in), NULL,
					   FI_ADDR_UNSPEC, TAG, 0, in),
				  "fi_trecv"))
			;
		if (i == 1) {
			post(a, out, 200);
			await(a, b);
		}
		await(b, a);
		mem_check(b, in, 200, p->round, "message");
	}
}

/* The second writes and reads the first's memory. */
static void parent_moves(struct parent *p)
{
	struct side *a = p->s, *b = &p->second;
	uint8_t buf[512];

	for (int i = 0; i < 2; i++) {
		uint8_t *mem = i ? p->shared : p->plain;
		uint64_t at = remote_base(&a->node, mem) + 4096;
		uint64_t key = fi_mr_key(p->mr[i]);

		side_check(a, p->round == 0 || mem[0] == (uint8_t)(p->round - 1),
			   "the region's first byte stays");
		mem[0] = (uint8_t)p->round;
		mem_fill(buf, sizeof(buf), p->round + 7);
		while (node_again(b,
				  fi_write(b->node.ep, buf, sizeof(buf), NULL,
					   b->node.peer, at, key, NULL),
				  "fi_write"))
			;
		await(b, a);
		memset(buf, 0, sizeof(buf));
		while (node_again(b,
				  fi_read(b->node.ep, buf, sizeof(buf), NULL,
					  b->node.peer, at, key, NULL),
				  "fi_read"))
			;
		await(b, a);
		mem_check(b, buf, sizeof(buf), p->round + 7, "what was written");
	}
}

/* ---- children */

static void child_talks(struct parent *p, struct side *s)
{
	static const char word[] = "from a child";
	struct done d;

	node_open_alone(s, &s->node, &want_all);
	side_check(s,
		   fi_av_insert(s->node.av, p->second.node.name, 1, &s->node.peer, 0,
				NULL) == 1,
		   "fi_av_insert");
	while (node_again(s,
			  fi_tsend(s->node.ep, word, sizeof(word), NULL, s->node.peer,
				   TAG + 1, NULL),
			  "fi_tsend"))
		;
	if (!node_next(s, &d, WAIT_MS) || d.err)
		side_die(s, "a child's message does not leave");
	node_close(s, &s->node);
}

/* No promise is broken but the child's own. */
static void child_posts(struct parent *p)
{
	struct fi_cq_tagged_entry e;
	uint8_t junk[200] = {1};
	struct node *n[2] = {&p->s->node, &p->second.node};

	for (int i = 0; i < 100; i++) {
		for (int k = 0; k < 2; k++) {
			fi_tsend(n[k]->ep, junk, sizeof(junk), NULL, n[k]->peer, TAG,
				 NULL);
			fi_trecv(n[k]->ep, junk, sizeof(junk), NULL, FI_ADDR_UNSPEC, TAG,
				 0, NULL);
			fi_cq_read(n[k]->cq, &e, 1);
		}
	}
}

static void child_run(struct parent *p, enum child_kind kind, struct side *s)
{
	char number[16];

	soak_leaks_off();
	switch (kind) {
	case CHILD_CLOSES:
		parent_close(p);
		break;
	case CHILD_TALKS:
		child_talks(p, s);
		break;
	case CHILD_LEAVES:
		break;
	case CHILD_KILLED:
		for (;;)
			pause();
	case CHILD_POSTS:
		child_posts(p);
		_exit(0);
	case CHILD_EXECS:
		snprintf(number, sizeof(number), "%ld", inherited);
		execl("/proc/self/exe", "forks", "--descriptors", number, (char *)NULL);
		_exit(127);
	case CHILDREN:
		break;
	}
	exit(s->failed || p->s->failed ? 1 : 0);
}

/* In the program that a child executes: 0 if there are no others. */
static int descriptors(const char *want)
{
	return inherited > strtol(want, NULL, 10);
}

static bool child_ended(struct side *s, pid_t pid, enum child_kind kind)
{
	const uint64_t end = now_ms() + CHILD_MS;
	int status;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (s->node.cq)
			node_progress(&s->node);
		if (now_ms() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return side_check(s, false, "a child that %s has no end",
					  child_names[kind]);
		}
		sched_yield();
	}
	if (kind == CHILD_KILLED)
		return true;
	return side_check(s, status == 0, "a child that %s: status 0x%x",
			  child_names[kind], status);
}

/* One child, while messages lie in the ring. */
static void child_round(struct parent *p, enum child_kind kind)
{
	struct side *a = p->s, *b = &p->second, s;
	uint8_t out[200], in[64];
	int sock;
	pid_t pid;

	mem_fill(out, sizeof(out), p->round);
	post(a, out, sizeof(out));
	if (kind == CHILD_TALKS) {
		while (node_again(b,
				  fi_trecv(b->node.ep, in, sizeof(in), NULL,
					   FI_ADDR_UNSPEC, TAG + 1, 0, in),
				  "fi_trecv"))
			;
	}
	pid = soak_fork(&s, &sock);
	if (pid == 0)
		child_run(p, kind, &s);
	close(sock);
	if (kind == CHILD_KILLED) {
		parent_moves(p);
		kill(pid, SIGKILL);
	}
	child_ended(&p->second, pid, kind);
	if (kind == CHILD_TALKS) {
		await(b, a);
		side_check(b, strcmp((char *)in, "from a child") == 0,
			   "a child's message");
	}
	parent_talks(p, out);
	if (kind != CHILD_KILLED)
		parent_moves(p);
	p->round++;
}

/* ---- the same again and again */

static bool is_more(const struct soak_use *warm, const struct soak_use *now,
		    long heap_more)
{
	return now->fds > warm->fds || now->threads > warm->threads ||
	       (soak_is_exact(now) &&
		(now->maps > warm->maps + 4 || now->heap > warm->heap + heap_more ||
		 now->held_kb > warm->held_kb + PAGES_MORE));
}

/* What was left has time to go: a link that a child had ends when it is heard of, and a
 * thread that was joined is listed until the kernel is done with it. What is lost stays.
 */
static void judge(struct side *s, struct node *n, const struct soak_use *warm,
		  long heap_more, const char *what)
{
	const uint64_t end = now_ms() + WAIT_MS;
	struct soak_use now;

	soak_measure(&now);
	while (is_more(warm, &now, heap_more) && now_ms() < end) {
		if (n)
			node_progress(n);
		sleep_ms(10);
		soak_measure(&now);
	}
	printf("# %s: pages %ld to %ld KiB, heap %ld to %ld bytes, mappings %ld to "
	       "%ld, descriptors %ld to %ld, threads %ld to %ld\n",
	       what, warm->held_kb, now.held_kb, warm->heap, now.heap, warm->maps,
	       now.maps, warm->fds, now.fds, warm->threads, now.threads);
	side_check(s, now.fds <= warm->fds, "%s: descriptors", what);
	side_check(s, now.threads <= warm->threads, "%s: threads", what);
	if (!soak_is_exact(&now))
		return;
	side_check(s, now.maps <= warm->maps + 4, "%s: mappings", what);
	side_check(s, now.heap <= warm->heap + heap_more, "%s: heap", what);
	side_check(s, now.held_kb <= warm->held_kb + PAGES_MORE, "%s: pages", what);
}

/* The measure itself: a page that is lost in every round is seen. */
static void loss_check(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct soak_use before, now;
	uint8_t *lost[DOMAINS_SHORT];

	soak_measure(&before);
	if (!soak_is_exact(&before)) {
		tap_skip(1, "memory: a sanitizer keeps what is freed");
		return;
	}
	for (int i = 0; i < DOMAINS_SHORT; i++) {
		lost[i] = mem_new(page);
		lost[i][0] = 1;
	}
	soak_measure(&now);
	tap_ok(now.held_kb > before.held_kb + PAGES_MORE,
	       "a page per round would be seen");
	for (int i = 0; i < DOMAINS_SHORT; i++)
		mem_free(lost[i], page);
}

static void children_run(struct side *s, int count)
{
	struct soak_use warm = {0};
	struct parent p;

	count *= KEPT_TIMES;
	parent_open(s, &p);
	for (int i = 0; i < CHILDREN + count; i++) {
		if (i == CHILDREN)
			soak_measure(&warm);
		child_round(&p, (enum child_kind)(i % CHILDREN));
		if (p.s->failed || p.second.failed)
			side_die(s, "round %d: a child that %s", i,
				 child_names[i % CHILDREN]);
	}
	judge(s, &p.second.node, &warm, HEAP_MORE * KEPT_TIMES, "children");
	parent_close(&p);
}

static void domains_run(struct side *s, int count)
{
	struct soak_use warm = {0};

	for (int i = 0; i < 10 + count; i++) {
		struct done d;
		uint64_t in = 0, out = (uint64_t)i;

		if (i == 10)
			soak_measure(&warm);
		node_open_alone(s, &s->node, i % 4 ? &want_all : &want_auto);
		while (node_again(
			s,
			fi_trecv(s->node.ep, &in, 8, NULL, FI_ADDR_UNSPEC, TAG, 0, NULL),
			"fi_trecv"))
			;
		while (node_again(
			s, fi_tsend(s->node.ep, &out, 8, NULL, s->node.self, TAG, NULL),
			"fi_tsend"))
			;
		for (int k = 0; k < 2; k++)
			side_check(s, node_next(s, &d, WAIT_MS) && !d.err,
				   "a message to oneself");
		side_check_u64(s, in, out, "its word");
		node_close(s, &s->node);
		if (s->failed)
			side_die(s, "round %d", i);
	}
	judge(s, NULL, &warm, HEAP_MORE, "domains");
}

/* libfabric unloads the provider at the end of a process, whatever is open then. */
static void exits_run(struct side *s, int count)
{
	for (int i = 0; i < count; i++) {
		struct side c;
		int sock;
		pid_t pid = soak_fork(&c, &sock);

		if (pid == 0) {
			node_open_alone(&c, &c.node, i % 2 ? &want_all : &want_auto);
			exit(c.failed ? 1 : 0);
		}
		close(sock);
		child_ended(s, pid, CHILD_LEAVES);
	}
}

/* A new process gets the address of a dead one whose child lives. The child says itself
 * that it is there: its parent may be back from fork() before the child has let go of
 * what it inherited. */
static void address_run(struct side *s, int count)
{
	struct want want = want_all;
	struct side c;
	char port[8];
	pid_t pid, left;
	int status;

	(void)count;
	/* Below those that the system hands out, and another than a second run's. */
	snprintf(port, sizeof(port), "%d", 12000 + (int)getpid() % 20000);
	want.service = port;
	pid = soak_fork(&c, &s->sock);
	if (pid == 0) {
		node_open_alone(&c, &c.node, &want);
		if (fork() == 0) {
			alarm(200);
			left = getpid();
			side_tell(&c, &left, sizeof(left));
		}
		for (;;)
			pause();
	}
	side_hear_passive(s, &left, sizeof(left));
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	node_open_alone(s, &s->node, &want);
	node_close(s, &s->node);
	kill(left, SIGKILL);
}

static bool run_apart(void (*run)(struct side *s, int count), int count, int seconds)
{
	struct side s;
	int status, sock;
	pid_t pid = soak_fork(&s, &sock);

	if (pid == 0) {
		alarm((unsigned)seconds);
		run(&s, count);
		exit(s.failed ? 1 : 0);
	}
	close(sock);
	waitpid(pid, &status, 0);
	if (status)
		tap_diag("status 0x%x", status);
	return status == 0;
}

int main(int argc, char **argv)
{
	struct soak_use use;
	struct soak k;
	int seconds;

	soak_measure(&use);
	inherited = use.fds;
	if (argc == 3 && strcmp(argv[1], "--descriptors") == 0)
		return descriptors(argv[2]);
	test_init(argc, argv);
	soak_init(&k, argc, argv, tap_short() ? DOMAINS_SHORT / 4 : DOMAINS_SHORT);
	seconds = 120 + k.count / 5;
	loss_check();
	tap_ok(run_apart(children_run, (k.count + 9) / 10, seconds),
	       "children do their parent no harm");
	tap_ok(run_apart(domains_run, k.count, seconds),
	       "domains are opened and closed %d times", k.count);
	tap_ok(run_apart(exits_run, (k.count + 99) / 100 + 4, seconds),
	       "processes exit with everything open");
	if (strcmp(test_provider(), "shm") == 0)
		tap_skip(1, "an address again: shm has no ports");
	else
		tap_ok(run_apart(address_run, 1, seconds),
		       "the address of a dead process is free although its child lives");
	return tap_done();
}
