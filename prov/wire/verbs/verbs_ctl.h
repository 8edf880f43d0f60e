/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control channel of a link, without its queue pair: numbers of packets, what is kept
 * until acknowledged, what is sent again, what was seen before (rule B1), and whose turn
 * it is when there is little room (rule B3). Pure.
 *
 * Packets lie in slots: number n in slot n % window, from when it is queued until it is
 * acknowledged. una <= sent <= nxt: numbers before una are acknowledged, those before
 * sent are on the present queue pair. After another one was made, everything that the
 * peer hasn't heard is sent again; whatever comes twice is dropped by its number.
 *
 * A packet's acknowledgement gives its receive back as well, so there are no credits but
 * the window, which the receiver says with each acknowledgement: it may grow, and never
 * shrinks. Acknowledgements ride on packets; one that travels alone has no number and
 * is due at a quarter of the window, so no more than four of them and one for luck lie at
 * a peer that doesn't look: VERBS_CTL_SPARE receives more than the window are posted.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_CTL_H
#define WEFT_WIRE_VERBS_VERBS_CTL_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "util/le.h"

#define VERBS_CTL_WINDOW_MIN 4u
#define VERBS_CTL_WINDOW_MAX 32u
#define VERBS_CTL_SPARE	     5u

enum verbs_ctl_kind {
	VERBS_CTL_PACKET = 1, /* of the layer above */
	VERBS_CTL_DQPLB,      /* prov/dqplb/msg.h */
	VERBS_CTL_LANE,	      /* verbs_msg.h */
	VERBS_CTL_BYE,	      /* the link ends here: nothing follows, nothing behind it */
	VERBS_CTL_ACK,	      /* only what its head says; not numbered */
	VERBS_CTL_KINDS
};

/* One word: each byte of a packet costs devices of software as much as instructions do.
 * Numbers are their last 16 bits: what is on its way, or was seen before, is within a
 * window of what is expected. How much follows is what the queue pair says. */
struct verbs_ctl_head {
	uint8_t kind;
	uint8_t window;	    /* numbers from `ack` on that may be sent; 0: as before */
	struct le16 number; /* ACK: 0 */
	struct le16 ack;    /* every number before this one was heard */
	uint8_t zero[2];
};

_Static_assert(sizeof(struct verbs_ctl_head) == 8, "verbs_ctl_head");
_Static_assert(VERBS_CTL_WINDOW_MAX < 1u << 14, "16 bits tell numbers apart");

/* How much of the window each may use. */
enum verbs_ctl_class {
	VERBS_CTL_DATA,
	VERBS_CTL_CONTROL,
	VERBS_CTL_OWN, /* the wire's own */
	VERBS_CTL_CLASSES
};

struct verbs_ctl {
	uint64_t una;
	uint64_t sent;
	uint64_t high; /* largest sent ever was */
	uint64_t nxt;
	uint32_t window; /* of ours */
	uint32_t limit[VERBS_CTL_CLASSES];
	uint32_t grant;		 /* window of the peer's */
	uint32_t grant_told;	 /* as it was told last */
	_Atomic(uint64_t) heard; /* numbers before it; read by the helper thread too */
	uint64_t told;		 /* last acknowledgement that was sent */
	uint64_t replays;	 /* sent again */
	uint64_t duplicates;	 /* dropped */
};

/* Windows: of ours, as the peer said, and of the peer's. */
void verbs_ctl_init(struct verbs_ctl *c, uint32_t window, uint32_t grant);
/* The peer lets us go so far beyond what it heard. */
void verbs_ctl_window(struct verbs_ctl *c, uint32_t window);
/* More of the peer's may lie here; it hears of it with what is sent next. */
static inline void verbs_ctl_grant(struct verbs_ctl *c, uint32_t grant)
{
	c->grant = grant;
}

static inline bool verbs_ctl_room(const struct verbs_ctl *c, enum verbs_ctl_class cls)
{
	return c->nxt - c->una < c->limit[cls];
}

/* The next packet's number; there was room. */
static inline uint64_t verbs_ctl_take(struct verbs_ctl *c)
{
	return c->nxt++;
}

/* The next to be sent on the present queue pair; false: none. */
static inline bool verbs_ctl_next(struct verbs_ctl *c, uint64_t *number)
{
	if (c->sent == c->nxt)
		return false;
	*number = c->sent++;
	if (c->sent > c->high)
		c->high = c->sent;
	else
		c->replays++;
	return true;
}

/* It could not be posted after all. */
static inline void verbs_ctl_unsent(struct verbs_ctl *c)
{
	c->sent--;
}

/* The number with these last 16 bits that is nearest to `near`. Before 0: near the end of
 * all numbers, where none ever is. */
static inline uint64_t verbs_ctl_near(uint64_t near, uint64_t low)
{
	return near + (uint64_t)(int64_t)(int16_t)(uint16_t)(low - near);
}

/* A packet's head: 0 and *said in host order of what was read once; -EPROTO: short,
 * unknown. `bytes` may change meanwhile. */
struct verbs_ctl_said {
	enum verbs_ctl_kind kind;
	uint32_t window;
	uint32_t len; /* bytes that follow */
	uint64_t number;
	uint64_t ack;
};
static inline int verbs_ctl_parse(const struct verbs_ctl *c, const void *bytes,
				  size_t len, struct verbs_ctl_said *said)
{
	struct le64 head;
	uint64_t word;

	if (len < sizeof(head))
		return -EPROTO;
	memcpy(&head, bytes, sizeof(head));
	/* The compiler must not read again what the peer may change meanwhile. */
	__asm__("" : "+r"(head.v));
	word = le64_get(head);
	if (word >> 48)
		return -EPROTO;
	said->kind = (uint8_t)word;
	said->window = (uint8_t)(word >> 8);
	said->len = (uint32_t)(len - sizeof(head));
	said->number = verbs_ctl_near(
		atomic_load_explicit(&c->heard, memory_order_relaxed), word >> 16);
	said->ack = verbs_ctl_near(c->una, word >> 32);
	/* Of most there is nothing more to be asked. */
	if (__builtin_expect(said->kind == VERBS_CTL_PACKET, 1))
		return 0;
	if (said->kind == 0 || said->kind >= VERBS_CTL_KINDS)
		return -EPROTO;
	if ((said->kind == VERBS_CTL_ACK || said->kind == VERBS_CTL_BYE) && said->len)
		return -EPROTO;
	return said->kind == VERBS_CTL_ACK && (uint16_t)(word >> 16) ? -EPROTO : 0;
}

static inline void verbs_ctl_write(void *bytes, enum verbs_ctl_kind kind, uint32_t window,
				   uint64_t number, uint64_t ack)
{
	const struct le64 head =
		le64_of((uint64_t)kind | (uint64_t)(uint8_t)window << 8 |
			(uint64_t)(uint16_t)number << 16 | (uint64_t)(uint16_t)ack << 32);

	memcpy(bytes, &head, sizeof(head));
}

/* The peer heard everything before `ack`, and lets us go so far. -EPROTO: it can't have.
 */
static inline int verbs_ctl_acked(struct verbs_ctl *c, uint64_t ack, uint32_t window)
{
	if (window > c->window)
		verbs_ctl_window(c, window < VERBS_CTL_WINDOW_MAX ? window
								  : VERBS_CTL_WINDOW_MAX);
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

/* A numbered packet came: 1: it is the next one; 0: seen before; -EPROTO: one is missing,
 * or it is beyond the window. */
static inline int verbs_ctl_arrived(struct verbs_ctl *c, uint64_t number)
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

#define VERBS_CTL_WORD_PLAIN UINT64_C(0xffff0000ffff00ff) /* kind, number, zeros */

/* As most packets are, in few steps: the next one of the layer above, with an
 * acknowledgement that says no more than verbs_ctl_acked would take. False: nothing has
 * happened, and verbs_ctl_parse and the others find out what it is. */
static inline bool verbs_ctl_plain(struct verbs_ctl *c, const void *bytes)
{
	uint64_t heard = atomic_load_explicit(&c->heard, memory_order_relaxed);
	struct le64 head;
	uint64_t word, more;

	memcpy(&head, bytes, sizeof(head));
	/* The compiler must not read again what the peer may change meanwhile. */
	__asm__("" : "+r"(head.v));
	word = le64_get(head);
	more = (uint16_t)((word >> 32) - c->una);
	if ((word & VERBS_CTL_WORD_PLAIN) !=
		    (VERBS_CTL_PACKET | (uint64_t)(uint16_t)heard << 16) ||
	    (uint8_t)(word >> 8) > c->window || more > c->sent - c->una ||
	    heard - c->told >= c->grant)
		return false;
	c->una += more;
	atomic_store_explicit(&c->heard, heard + 1, memory_order_release);
	return true;
}

/* Whether an acknowledgement should travel alone. */
static inline bool verbs_ctl_due(const struct verbs_ctl *c)
{
	return atomic_load_explicit(&c->heard, memory_order_relaxed) - c->told >=
	       (c->grant_told + 3) / 4;
}
/* What to acknowledge in what is sent now. */
static inline uint64_t verbs_ctl_tell(struct verbs_ctl *c)
{
	c->grant_told = c->grant;
	return c->told = atomic_load_explicit(&c->heard, memory_order_relaxed);
}
/* Another queue pair is there, and the peer says what it heard. -EPROTO. */
int verbs_ctl_resume(struct verbs_ctl *c, uint64_t peer_heard);

#endif
