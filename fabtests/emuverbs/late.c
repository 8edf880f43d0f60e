/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes that were acknowledged before they are in memory; see late.h. */
#include "config.h"

#include "fabtests/emuverbs/late.h"

#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/mr.h"
#include "fabtests/emuverbs/packet.h"
#include "util/list.h"

/* Long enough for whoever takes an acknowledgement for more to be found out, short enough
 * for whoever polls memory. */
#define LATE_NS	  20000000u
#define LATE_MOST 256u

struct late {
	struct list node;
	struct emu_qp *qp;
	uint64_t due;
	uint64_t remote;
	uint32_t key;
	uint32_t bytes;
	uint8_t data[];
};

static struct list held = {&held, &held};
static struct list loose = {&loose, &loose}; /* relaxed; the newest first */
static unsigned count;

static void place(struct late *l)
{
	void *at = emu_mr_find(l->qp->pd, l->key, l->remote, l->bytes,
			       IBV_ACCESS_REMOTE_WRITE);

	/* Whoever takes memory away has what was accepted placed before. */
	if (at)
		emu_mr_copy(at, l->data, l->bytes);
	list_remove(&l->node);
	count--;
	free(l);
}

bool emu_late_hold(struct emu_qp *qp, const struct emu_packet *p, const uint8_t *payload,
		   bool relaxed)
{
	struct late *l;

	if (count >= LATE_MOST)
		emu_late_place(NULL, true);
	l = malloc(sizeof(*l) + p->bytes);
	if (!l)
		return false;
	l->qp = qp;
	l->due = emu_now() + LATE_NS;
	l->remote = p->remote + p->offset;
	l->key = p->key;
	l->bytes = p->bytes;
	memcpy(l->data, payload, p->bytes);
	if (relaxed)
		list_push_front(&loose, &l->node);
	else
		list_push_back(&held, &l->node);
	count++;
	emu_due(l->due);
	return true;
}

static void place_of(struct list *list, const struct emu_qp *qp)
{
	list_foreach_safe (n, tmp, list) {
		struct late *l = container_of(n, struct late, node);

		if (!qp || l->qp == qp)
			place(l);
	}
}

void emu_late_place(const struct emu_qp *qp, bool relaxed)
{
	place_of(&held, qp);
	if (relaxed)
		place_of(&loose, qp);
}

void emu_late_timers(uint64_t now)
{
	const struct late *oldest;

	list_foreach_safe (n, tmp, &held) {
		struct late *l = container_of(n, struct late, node);

		if (l->due > now) {
			emu_due(l->due);
			break;
		}
		place(l);
	}
	if (list_empty(&loose))
		return;
	oldest = container_of(loose.prev, struct late, node);
	if (oldest->due > now)
		emu_due(oldest->due);
	else
		place_of(&loose, NULL);
}

void emu_late_forget(void)
{
	struct list *n;

	while ((n = list_pop_front(&held)) || (n = list_pop_front(&loose)))
		free(container_of(n, struct late, node));
	count = 0;
}
