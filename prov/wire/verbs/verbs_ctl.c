/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the control channel. Rules B1, B3. */
#include "config.h"

#include "prov/wire/verbs/verbs_ctl.h"

#include <errno.h>
#include <string.h>

/* A quarter and an eighth are left to others, and never nothing. */
static void window_set(struct verbs_ctl *c, uint32_t window)
{
	c->window = window;
	c->limit[VERBS_CTL_DATA] = window - (window < 8 ? 2 : window / 4);
	c->limit[VERBS_CTL_CONTROL] = window - (window < 8 ? 1 : window / 8);
	c->limit[VERBS_CTL_OWN] = window;
}

void verbs_ctl_init(struct verbs_ctl *c, uint32_t window, uint32_t grant)
{
	memset(c, 0, sizeof(*c));
	window_set(c, window);
	c->grant = c->grant_told = grant;
}

int verbs_ctl_parse(const void *bytes, size_t len, struct verbs_ctl_said *said)
{
	struct verbs_ctl_head head;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, bytes, sizeof(head));
	if (head.kind == 0 || head.kind >= VERBS_CTL_KINDS || head.zero[0] ||
	    head.zero[1])
		return -EPROTO;
	said->kind = head.kind;
	said->window = head.window;
	said->len = le32_get(head.len);
	said->number = le64_get(head.number);
	said->ack = le64_get(head.ack);
	if (said->len != len - sizeof(head))
		return -EPROTO;
	if ((head.kind == VERBS_CTL_ACK || head.kind == VERBS_CTL_BYE) && said->len)
		return -EPROTO;
	return head.kind == VERBS_CTL_ACK && said->number ? -EPROTO : 0;
}

void verbs_ctl_write(void *bytes, enum verbs_ctl_kind kind, uint32_t len, uint64_t number,
		     uint64_t ack)
{
	struct verbs_ctl_head head = {.kind = (uint8_t)kind,
				      .len = le32_of(len),
				      .number = le64_of(number),
				      .ack = le64_of(ack)};

	memcpy(bytes, &head, sizeof(head));
}

int verbs_ctl_acked(struct verbs_ctl *c, uint64_t ack, uint32_t window)
{
	if (window > c->window)
		window_set(c,
			   window < VERBS_CTL_WINDOW_MAX ? window : VERBS_CTL_WINDOW_MAX);
	if (ack <= c->una)
		return 0;
	if (ack > c->high)
		return -EPROTO;
	c->una = ack;
	/* Heard on the queue pair before this one. */
	if (c->sent < ack)
		c->sent = ack;
	return 0;
}

int verbs_ctl_arrived(struct verbs_ctl *c, uint64_t number)
{
	uint64_t heard = atomic_load_explicit(&c->heard, memory_order_relaxed);

	if (number > heard)
		return -EPROTO;
	if (number < heard) {
		c->duplicates++;
		return 0;
	}
	/* Further than it was ever let go. */
	if (heard - c->told >= c->grant)
		return -EPROTO;
	atomic_store_explicit(&c->heard, heard + 1, memory_order_release);
	return 1;
}

int verbs_ctl_resume(struct verbs_ctl *c, uint64_t peer_heard)
{
	if (peer_heard < c->una || peer_heard > c->high)
		return -EPROTO;
	c->una = peer_heard;
	c->sent = peer_heard;
	/* As it was told so. */
	c->told = atomic_load_explicit(&c->heard, memory_order_relaxed);
	return 0;
}
