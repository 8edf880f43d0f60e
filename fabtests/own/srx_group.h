/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints behind one shared receive context, and a sender that does what it is told;
 * see srx.c. */
#ifndef WEFT_FABTESTS_OWN_SRX_GROUP_H
#define WEFT_FABTESTS_OWN_SRX_GROUP_H

#include "fabtests/own/util.h"

#define EPS   3
#define LONG  ((1u << 20) + 5)
#define NAMES 64

/* What role 0 has beside its node, whose endpoint stays by itself. */
struct group {
	struct fid_ep *srx;
	struct fi_info *info;
	struct fid_ep *ep[EPS];
	struct fid_cq *cq[EPS];
	struct fid_cntr *cntr[EPS];
	fi_addr_t from; /* role 1 */
};

/* Both sides know each other afterwards. flags: for the bind of queue number 0. */
void group_open(struct side *s, struct group *g, uint64_t flags);
void group_close(struct side *s, struct group *g);
void member_open(struct side *s, struct group *g, int i, uint64_t flags);
void member_close(struct side *s, struct group *g, int i);
/* Role 1: addresses of the endpoints. */
void sender_open(struct side *s, fi_addr_t to[EPS]);

/* The next completion of any of the endpoints; which. -1: none within ms. */
int group_next(struct side *s, struct group *g, struct done *d, int ms);
/* There must be one; there must be none. */
int group_must(struct side *s, struct group *g, struct done *d);
void group_quiet(struct side *s, struct group *g, int ms);

struct order {
	uint64_t tag;
	uint32_t len;
	uint32_t to; /* EPS: no more */
	bool tagged;
};

/* Role 1 does what role 0 orders until the end. */
void obey(struct side *s);
/* It is on its way, and nothing completes; or something may. */
void order_send(struct side *s, struct group *g, int to, uint64_t tag, size_t len,
		bool tagged);
void order_only(struct side *s, int to, uint64_t tag, size_t len, bool tagged);
void order_end(struct side *s, struct group *g);

#endif
