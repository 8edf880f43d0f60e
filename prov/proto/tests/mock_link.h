/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the mock wire: its endpoints and links. */
#ifndef WEFT_PROTO_TESTS_MOCK_LINK_H
#define WEFT_PROTO_TESTS_MOCK_LINK_H

#include "prov/proto/tests/mock_wire.h"

struct mock_pkt {
	struct list node;
	uint64_t due;
	size_t len;
	_Alignas(8) char bytes[];
};

struct mock_seg {
	struct list node;
	uint64_t due;
	bool put;
	struct wire_segment seg;
	struct iovec local[4];
	void *handles[4];
};

/* Memory that was made known; dropped ones stay in the list, so that whoever names one is
 * caught. */
struct mock_mem {
	struct list node;
	char *start;
	size_t len;
	uint64_t name; /* by which peers reach it */
	bool dropped;
};

struct mock_ep {
	struct wire_ep_base base;
	struct mock_net *net;
	struct wire_ep_attr attr;
	struct list links;
	struct list mems; /* struct mock_mem */
	struct mock_region regions[16];
	int region_count;
	struct {
		char *bytes;
		uint32_t turn;
		bool taken;
	} slots[MOCK_SLOTS];
};

/* Bytes that are on their way into the memory of a joint transfer's owner. */
struct mock_push {
	struct list node;
	uint64_t due;
	uint32_t cell;
	char *to;
	size_t len;
	struct mock_push *next; /* of the same piece */
	char bytes[];
};

enum mock_state { MOCK_DIALLING, MOCK_NEW, MOCK_UP };

struct mock_link {
	struct wire_link_base base;
	struct list node; /* of its endpoint */
	struct mock_ep *ep;
	struct mock_link *other;
	enum mock_state state;
	uint64_t due;
	int dying;	/* error to report once drained */
	struct list in; /* struct mock_pkt for this end */
	uint32_t in_count;
	uint64_t last_due;
	struct list segs;
	struct list notes;	/* struct mock_note that this end sent */
	struct mock_push *held; /* pushed, not reported yet */
	bool pushing;		/* between take and did */
	bool holding;		/* and what is pushed lands later */
	struct mock_pkt *reserved;
	struct mock_pkt *offered; /* what slot leads to */
	struct wire_slot slot;
};

static inline struct mock_ep *ep_of(struct wire_ep *ep)
{
	return (struct mock_ep *)ep;
}

static inline struct mock_link *link_of(struct wire_link *link)
{
	return (struct mock_link *)link;
}

/* ---- mock_wire.c, for the others */

/* Aborts unless what a segment names is registered, as the hardware would have it. */
void mock_check_local(const struct mock_link *l, const struct wire_segment *seg);
/* Where the target keeps it; NULL: refused, *err says why. */
char *mock_resolve(struct mock_link *l, const struct wire_segment *seg, bool put,
		   int *err);
void mock_move(const struct wire_segment *seg, char *at, bool put);
uint64_t mock_later(struct mock_net *net);

/* ---- mock_notice.c: puts that the target hears of */

int mock_put_notify(struct wire_link *link, const struct wire_segment *seg,
		    const struct wire_notice *n);
/* What happens to those that this end sent, and what it hears of the other's. */
int mock_notes_sent(struct mock_link *l);
int mock_notes_heard(struct mock_link *l);
void mock_notes_drop(struct mock_link *l);

/* ---- mock_joint.c: cells, and what is pushed and lands late */

void mock_hold(struct mock_link *l, const struct wire_segment *seg, char *at);
void mock_pushes_drop(struct mock_net *net, uint32_t cell);
/* Lands what is due. */
int mock_pushes_run(struct mock_net *net);
int mock_joint_open(struct wire_link *link, uint32_t pieces, struct wire_joint *j);
uint32_t mock_joint_take(struct wire_link *link, struct wire_joint *j, bool owner);
void mock_joint_did(struct wire_link *link, const struct wire_joint *j, bool ok);
enum wire_joint_state mock_joint_look(struct wire_link *link, const struct wire_joint *j);
void mock_joint_close(struct wire_ep *wep, struct wire_joint *j);
bool mock_joint_quiet(struct wire_ep *wep, const struct wire_joint *j);

#endif
