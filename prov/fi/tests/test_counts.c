/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of a domain (weft/weft_fi.h), over UDP: what applications ask for by
 * fi_open_ops. Over verbs: fabtests/emuverbs/tests/counted.t. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "prov/fi/tests/end.h"
#include "util/tap.h"
#include "util/tap_fork.h"
#include "weft/weft_fi.h"

enum { LONG = 1 << 20, PLENTY = 256, SECONDS = 60 };

static char out[LONG], in[LONG];

static bool await(struct end *e, struct end *other)
{
	const time_t until = time(NULL) + SECONDS;
	struct fi_cq_tagged_entry entry;

	while (time(NULL) < until) {
		if (fi_cq_read(e->cq, &entry, 1) == 1)
			return true;
		fi_cq_read(other->cq, &entry, 0);
	}
	return false;
}

/* One after the other: a sender's completion can't be taken for a receiver's. */
static bool message(struct end *a, struct end *b, fi_addr_t to, size_t len)
{
	return fi_trecv(b->ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL) == 0 &&
	       fi_tsend(a->ep, out, len, NULL, to, 1, NULL) == 0 && await(b, a) &&
	       await(a, b);
}

static uint64_t value(const struct weft_fi_count_ops *ops, struct fid_domain *domain,
		      const char *name)
{
	struct weft_fi_count c[PLENTY];
	size_t n = PLENTY;

	if (ops->read(domain, c, &n))
		return UINT64_MAX;
	for (size_t i = 0; i < n; i++)
		if (strcmp(c[i].name, name) == 0)
			return c[i].value;
	return UINT64_MAX;
}

struct lanes {
	size_t count, strangers;
	uint64_t packets, bytes;
};

static struct lanes lanes(const struct weft_fi_count_ops *ops, struct fid_domain *domain,
			  fi_addr_t peer)
{
	struct lanes sum = {.count = PLENTY};
	struct weft_fi_lane l[PLENTY];

	if (ops->lanes(domain, l, &sum.count) || sum.count > PLENTY)
		return (struct lanes){0};
	for (size_t i = 0; i < sum.count; i++) {
		sum.strangers += l[i].peer != peer;
		sum.packets += l[i].packets;
		sum.bytes += l[i].bytes;
	}
	return sum;
}

static void wrong(struct weft_fi_count_ops *ops, struct end *e)
{
	struct weft_fi_count c[2] = {{0}};
	struct weft_fi_lane l[2] = {{0}};
	size_t all = 0, n = 0;
	void *other;

	tap_ok(ops->read(e->domain, NULL, &all) == 0 && all > 2,
	       "without room: how many there are");
	n = 1;
	tap_ok(ops->read(e->domain, c, &n) == 0 && n == all && c[0].name && !c[1].name,
	       "room for one: one is written");
	n = 1;
	tap_ok(ops->lanes(e->domain, l, &n) == 0 && n > 1 && l[0].up && !l[1].up,
	       "likewise of lanes");
	n = 1;
	tap_is_int(ops->read(e->domain, NULL, &n), -FI_EINVAL, "room, and no memory");
	tap_is_int(ops->read(e->domain, c, NULL), -FI_EINVAL, "no count");
	tap_is_int(ops->lanes(NULL, l, &n), -FI_EINVAL, "no domain");
	tap_is_int(ops->lanes((struct fid_domain *)(void *)e->ep, l, &n), -FI_EINVAL,
		   "something else than a domain");
	tap_is_int(fi_open_ops(&e->domain->fid, WEFT_FI_COUNT_OPS, 1, &other, NULL),
		   -FI_EBADFLAGS, "no flag is known");
}

static void child(const struct weft_fi_count_ops *ops, struct fid_domain *domain)
{
	struct weft_fi_count c[1];
	size_t n = 1;
	int status;
	pid_t pid = tap_fork();

	if (pid == 0)
		_exit(ops->read(domain, c, &n) == -FI_EOPBADSTATE ? 0 : 1);
	tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
	       "a forked child is refused");
}

int main(void)
{
	struct weft_fi_count_ops *ops = NULL;
	uint64_t sent, before;
	struct lanes first, then;
	struct end e[2];
	fi_addr_t to;

	setenv("FI_WEFT_WIRE", "uet", 1);
	setenv("FI_WEFT_SHM", "0", 1);
	for (int i = 0; i < 2; i++)
		end_open(&e[i], FI_THREAD_SAFE);
	to = end_join(&e[0], &e[1]);
	end_join(&e[1], &e[0]);
	if (fi_open_ops(&e[0].domain->fid, WEFT_FI_COUNT_OPS, 0, (void **)&ops, NULL))
		tap_bail("no counters");
	tap_ok(ops->size >= sizeof(*ops), "as this header has them");
	tap_is_int((int)lanes(ops, e[0].domain, to).count, 0,
		   "nobody is reached: no lanes");
	before = value(ops, e[0].domain, "uet.sent");
	tap_ok(message(&e[0], &e[1], to, 8), "a message");
	sent = value(ops, e[0].domain, "uet.sent");
	tap_ok(sent > before && sent != UINT64_MAX, "counted (%llu packets)",
	       (unsigned long long)sent);
	first = lanes(ops, e[0].domain, to);
	tap_ok(first.count > 0 && first.strangers == 0, "%zu lanes, all to the peer",
	       first.count);
	tap_ok(message(&e[0], &e[1], to, LONG), "a long one");
	then = lanes(ops, e[0].domain, to);
	tap_ok(then.packets > first.packets && then.bytes >= first.bytes + LONG,
	       "is in the bytes of lanes (%llu)", (unsigned long long)then.bytes);
	wrong(ops, &e[0]);
	child(ops, e[0].domain);
	for (int i = 0; i < 2; i++)
		end_close(&e[i]);
	return tap_done();
}
