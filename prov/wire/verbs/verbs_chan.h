/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control channel of a link: the queue pair that carries packets, their memory, and
 * small reads of the peer's key table. What is numbered, kept and sent again is
 * verbs_ctl.h's to say. Endpoint lock, unless said otherwise.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_CHAN_H
#define WEFT_WIRE_VERBS_VERBS_CHAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_ctl.h"
#include "prov/wire/verbs/verbs_qp.h"
#include "prov/wire/wire.h"

struct verbs_mr;

#define VERBS_PACKET	4352u		     /* bytes of a packet of the layer above */
#define VERBS_CREDITS	VERBS_CTL_WINDOW_MAX /* numbered packets under way, at most */
#define VERBS_CHAN_ACKS 8u /* acknowledgements whose memory may still be read */

struct verbs_chan {
	struct verbs_ctl ctl;
	struct verbs_qp *qp;   /* NULL: there is none just now */
	struct ibv_send_wr wr; /* of a packet */
	struct ibv_sge sge;
	uint32_t acks;	  /* acknowledgements that were written */
	uint32_t grant;	  /* what the peer may send to begin with */
	uint64_t waits;	  /* packets that there was no room for */
	uint64_t grow_at; /* so many heard: the peer may have a larger window */
	bool bye_sent;	  /* and nothing behind it */
	bool bye_done;	  /* it has arrived */
	union {
		struct {
			bool bye_heard;
			/* Answerer: the dialler must be heard before anything is sent
			 * (C7).
			 */
			bool hold;
		};
		uint16_t odd; /* either of them */
	};
	bool broken; /* its queue pair is of no use any more */
	bool passed; /* something got through since that was last asked */
	bool probed; /* a read that nobody needs is under way */
	struct verbs_buf *slot[VERBS_CREDITS]; /* number n: n % VERBS_CREDITS */
	uint32_t len[VERBS_CREDITS];	       /* of each, with its head */
};

/* What a place of the control queue pair's send queue was for: bits. */
enum verbs_chan_cookie {
	VERBS_CHAN_PACKET = 0,
	VERBS_CHAN_READ = 1, /* of the key table */
	VERBS_CHAN_BYE = 2,
	VERBS_CHAN_PROBE = 4,
	VERBS_CHAN_ATOMIC = 8
};

void verbs_chan_init(struct verbs_link *link);
/* The link is up: packets may be written into its slot. */
void verbs_chan_up(struct verbs_link *link);
/* Its queue pair is closed. Endpoint lock, or nothing was ever sent. */
void verbs_chan_fini(struct verbs_link *link);
/* A queue pair on that rail, with its receives posted (rules C1, C8). Mutex. */
int verbs_chan_open(struct verbs_link *link, uint32_t rail, struct verbs_qp **qp);

/* Whether there is room for a packet of ours. */
bool verbs_chan_ready(struct verbs_link *link, enum verbs_ctl_class cls);
/* The room; NULL: none now. */
void *verbs_chan_reserve(struct verbs_link *link, enum verbs_ctl_class cls);
/* Leaves at once if it can. */
void verbs_chan_commit(struct verbs_link *link, enum verbs_ctl_kind kind, size_t len);
/* Sends what is queued and the acknowledgement that is due. */
void verbs_chan_flush(struct verbs_link *link);

/* Whether so many reads can be posted. */
bool verbs_chan_can_read(const struct verbs_link *link, uint32_t count);
/* Reads the peer's memory into the channel's; `at`: 0 or 1. False: not now. */
bool verbs_chan_read(struct verbs_link *link, unsigned at, uint64_t addr, uint32_t rkey,
		     size_t len, bool signal);
/* A read that is answered when all before it was, unless one is under way. */
void verbs_chan_probe(struct verbs_link *link);
const void *verbs_chan_read_at(const struct verbs_link *link, unsigned at);
#define VERBS_CHAN_READ_MAX 2048u

/* A native atomic, whose result is number `at`. False: not now. */
bool verbs_chan_atomic(struct verbs_link *link, uint32_t at, uint64_t addr, uint32_t rkey,
		       const struct wire_atomic *a);
uint64_t verbs_chan_result(const struct verbs_link *link, uint32_t at);

/* Another queue pair is there, and the peer says what it heard. -EPROTO. */
int verbs_chan_resume(struct verbs_link *link, uint64_t heard);

/* A receive's completion, and a send's. */
void verbs_chan_received(struct verbs_link *link, struct verbs_qp *qp,
			 const struct ibv_wc *wc);
void verbs_chan_sent(struct verbs_link *link, struct verbs_qp *qp,
		     const struct ibv_wc *wc);

/* Wire functions. */
void *verbs_pkt_reserve(struct wire_link *link, size_t len, enum wire_class cls);
void verbs_pkt_commit(struct wire_link *link, void *pkt, size_t len);

#endif
