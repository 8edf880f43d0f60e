/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts that the target hears of. Each takes three steps at moments of chance: its bytes
 * land, the target hears of it (in the order of the calls only where that was asked for),
 * the sender hears that it did.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/proto/tests/mock_link.h"

enum note_state { NOTE_SENT, NOTE_LANDED, NOTE_HEARD };

struct mock_note {
	struct list node; /* of the sender's end, in the order of the calls */
	enum note_state state;
	uint64_t due; /* of the next step */
	struct wire_notice n;
	struct wire_segment seg;
	struct iovec local[4];
	void *handles[4];
};

int mock_put_notify(struct wire_link *link, const struct wire_segment *seg,
		    const struct wire_notice *n)
{
	struct mock_link *l = link_of(link);
	struct mock_note *note;
	size_t sum = 0;
	int err = 0;

	for (size_t i = 0; i < seg->local_count; i++) {
		sum += seg->local[i].iov_len;
	}
	if (!l->base.caps.notify || sum != seg->len || seg->remote.raw) {
		abort();
	}
	mock_check_local(l, seg);
	if (mock_chance(l->ep->net, l->ep->net->refuse_segment)) {
		return -FI_EAGAIN;
	}
	if (l->dying) {
		return -FI_ECONNRESET;
	}
	if (seg->len && !mock_resolve(l, seg, true, &err)) {
		return err;
	}
	note = calloc(1, sizeof(*note));
	note->n = *n;
	note->seg = *seg;
	note->due = mock_later(l->ep->net);
	memcpy(note->local, seg->local, seg->local_count * sizeof(note->local[0]));
	note->seg.local = note->local;
	if (l->base.caps.local) {
		memcpy(note->handles, seg->handles,
		       seg->local_count * sizeof(note->handles[0]));
		note->seg.handles = note->handles;
	}
	list_push_back(&l->notes, &note->node);
	l->ep->net->notices++;
	return 0;
}

static void note_done(struct mock_link *l, struct mock_note *note, int err)
{
	void *cookie = note->seg.cookie;

	mock_check_local(l, &note->seg);
	list_remove(&note->node);
	free(note);
	l->ep->attr.events->segment_done(l->ep->attr.arg, (struct wire_link *)l, cookie,
					 err);
}

int mock_notes_sent(struct mock_link *l)
{
	int done = 0;

	list_foreach_safe (n, next, &l->notes) {
		struct mock_note *note = container_of(n, struct mock_note, node);
		char *at = NULL;
		int err = 0;

		if (l->dying) {
			note_done(l, note, -FI_ECONNRESET);
			done++;
			continue;
		}
		if (note->due > l->ep->net->now || note->state == NOTE_LANDED) {
			continue;
		}
		done++;
		if (note->state == NOTE_HEARD) {
			note_done(l, note, 0);
			continue;
		}
		if (note->seg.len) {
			at = mock_resolve(l, &note->seg, true, &err);
		}
		if (err && !at) {
			note_done(l, note, err);
			continue;
		}
		mock_check_local(l, &note->seg);
		if (at) {
			mock_move(&note->seg, at, true);
		}
		note->state = NOTE_LANDED;
		note->due = mock_later(l->ep->net);
	}
	return done;
}

int mock_notes_heard(struct mock_link *l)
{
	struct mock_net *net = l->ep->net;
	bool all = true; /* those before were heard */
	int done = 0;

	if (!l->other || l->dying || l->other->dying) {
		return 0;
	}
	list_foreach_safe (n, next, &l->other->notes) {
		struct mock_note *note = container_of(n, struct mock_note, node);
		struct wire_notice told = note->n;

		if (note->state == NOTE_LANDED && note->due <= net->now &&
		    (all || !told.ordered)) {
			note->state = NOTE_HEARD;
			note->due = mock_later(net);
			told.ordered = mock_chance(net, 50); /* not set at the target */
			l->ep->attr.events->arrived(l->ep->attr.arg,
						    (struct wire_link *)l, &told,
						    note->seg.len);
			done++;
		}
		all &= note->state == NOTE_HEARD;
	}
	return done;
}

void mock_notes_drop(struct mock_link *l)
{
	struct list *n;

	while ((n = list_pop_front(&l->notes))) {
		free(container_of(n, struct mock_note, node));
	}
}
