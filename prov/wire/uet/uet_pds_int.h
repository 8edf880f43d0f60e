/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the delivery machine: what its files share. */
#ifndef WEFT_UET_PDS_INT_H
#define WEFT_UET_PDS_INT_H

#include "prov/wire/uet/uet_pds.h"
#include "util/list.h"

#define UET_NO_SLOT UINT16_MAX
#define UET_NEVER   UINT64_MAX

enum uet_pdc_state {
	UET_PDC_FREE,
	UET_PDC_SYN,  /* dialled; the peer's id isn't known yet */
	UET_PDC_HALF, /* opened by a peer that hasn't used our id yet */
	UET_PDC_OPEN,
	UET_PDC_QUIESCE, /* initiator: closes once everything is through */
	UET_PDC_CLOSING, /* initiator: the close is on its way */
	UET_PDC_WAIT,	 /* over; its ids are not used again for a while */
	UET_PDC_STATES
};

enum uet_slot_state {
	UET_SLOT_FREE,
	UET_SLOT_NEW,	 /* waits for its first time */
	UET_SLOT_FLYING, /* on its way, or lost, or its ack is */
	UET_SLOT_AGAIN,	 /* to be sent again */
	UET_SLOT_HELD,	 /* refused: again in a while */
	UET_SLOT_THERE,	 /* arrived; what the response is isn't known */
	UET_SLOT_DONE	 /* over; one before it isn't */
};

/* A packet between uet_pdc_send and `done`. */
struct uet_slot {
	const void *payload;
	void *cookie;
	uint64_t sent_at;
	uint32_t payload_len;
	uint32_t number; /* on its path */
	uint32_t order;	 /* of all that the context sent */
	uint16_t next;	 /* FLYING, AGAIN: on that list */
	uint16_t prev;
	uint8_t state;
	uint8_t path;
	uint8_t tries; /* times it was sent; stays at the last */
	uint8_t next_hdr;
	uint8_t ctl; /* UET_NEXT_NONE: a control packet that uses a number */
	uint8_t ses_len;
	bool ar;
	bool emptied; /* it has no payload any more */
	bool untimed; /* when it left isn't known well enough to measure by it */
	uint8_t ses[UET_SES_MAX];
};

struct uet_slots {
	uint16_t first;
	uint16_t last;
};

/* The sending half. Numbers: una <= next <= end. */
struct uet_tx {
	struct uet_slot *slot;
	uint32_t una;	/* the lowest that isn't over */
	uint32_t next;	/* the next to be sent for its first time */
	uint32_t end;	/* the next to be given out */
	uint32_t start; /* the first */
	uint32_t cack;	/* the highest that the peer said */
	uint32_t range; /* numbers beyond it that the peer takes */
	uint32_t order;
	uint32_t acked_order;	/* newest that came through for certain ... */
	uint64_t acked_sent_at; /* ... and when it had left */
	uint32_t recover;	/* recovery: until this one is through */
	uint32_t last_len;	/* payload of the newest that left */
	struct uet_slots flying;
	struct uet_slots again;
	uint32_t held;
	uint32_t backoff;
	uint32_t nack_backoff;
	uint64_t srtt;
	uint64_t rto_at;
	uint64_t hold_until;
	uint64_t heard_at; /* anything from the peer */
	uint64_t moved_at; /* una, or the peer said wait */
	uint64_t probe_at;
	uint64_t probe_sent_at;
	uint32_t probe_order;
	uint32_t probes_left;
	uint16_t probe_opaque;
	bool any_acked;
	bool recovering;
	uint8_t force;	/* so many packets may leave whatever the window says */
	bool probe_due; /* control packets to be sent */
	bool probe_flying;
	bool ack_req_due;
	bool clear_due;
	bool unproven; /* initiator: the peer hasn't answered to its own id */
};

struct uet_gtd {
	uint32_t psn;
	bool used;
	bool ready; /* the response is there */
	bool due;   /* to be sent */
	bool retx;
	struct uet_reply reply;
};

/* Refusals of a context that wait to be sent; what has no room is found out by the peer.
 */
#define UET_NACKS 8u

struct uet_nack_due {
	uint8_t code;
	bool retx;
	uint32_t entropy; /* uet_out.entropy */
	uint32_t psn;
};

/* The receiving half. */
struct uet_rx {
	uint64_t *bits;
	struct uet_gtd *gtd;
	uint32_t start;
	uint32_t cack;	/* as it is said: below every response that is kept */
	uint32_t next;	/* the lowest that hasn't arrived */
	uint32_t above; /* arrived, above cack */
	uint32_t gtds;
	uint64_t received; /* nominal bytes */
	uint32_t gathered; /* bytes since the last ack */
	uint64_t ack_at;
	bool ack_due;
	bool ack_any; /* something arrived that no ack has said */
	bool mark;
	bool retx;
	bool dirty; /* lo to hi arrived since the last ack, some above cack */
	uint32_t lo;
	uint32_t hi;
	uint32_t ack_psn;
	uint64_t stamp;
	uint32_t entropy; /* uet_out.entropy */
	bool probe;	  /* a probe's ack is due */
	uint16_t probe_opaque;
	uint32_t probe_base;
	uint64_t probe_stamp;
	uint32_t probe_entropy;
	uint32_t nacks; /* that are due */
	struct uet_nack_due nack[UET_NACKS];
	uint32_t ooo_psn;   /* ROD: what a refusal was sent for ... */
	uint64_t ooo_until; /* ... until then no other */
};

struct uet_pdc {
	struct uet_pds *pds;
	void *ctx;
	enum uet_pdc_state state;
	bool initiator;
	bool ordered;
	bool asked;    /* not the initiator: it was asked to close */
	bool ready_on; /* on the ready list */
	uint16_t id;
	uint16_t peer_id; /* 0: not known */
	struct uet_peer peer;
	uint32_t hosts; /* its other addresses */
	uint8_t host[UET_HOSTS_MORE][16];
	struct list ready;
	struct list by_id;
	struct list by_peer; /* not the initiator */
	uint32_t heap;	     /* place in the heap of timers */
	uint64_t due;	     /* its key there: not later than what is due */
	uint64_t state_end;  /* HALF, WAIT, asked: when that ends */
	uint32_t turn;	     /* packets that it has sent in a row */
	struct uet_tx tx;
	struct uet_rx rx;
	struct uet_nscc cc;
	struct uet_paths paths;
};

/* An answer to somebody without a context. */
struct uet_stray {
	struct uet_peer peer;
	struct uet_pds_head head;
	uint16_t entropy;
};

#define UET_STRAYS 64u

struct uet_pds {
	struct uet_pds_config config;
	struct uet_pds_stats stats;
	struct uet_pdc *pdc;
	struct uet_pdc **heap;
	struct list *by_id;
	struct list *by_peer;
	struct list ready;
	struct list free;
	uint32_t buckets;
	uint32_t half;
	uint32_t strays;
	uint32_t stray_first;
	uint32_t pend;
	bool restore;
	struct uet_stray stray[UET_STRAYS];
};

/* uet_pds.c */
struct uet_pdc *uet_pdc_find(struct uet_pds *pds, uint16_t id);
void uet_pds_ready(struct uet_pdc *pdc);
void uet_pds_timer(struct uet_pdc *pdc);
/* Which of its peer's addresses a packet is from, as uet_out.entropy has it; less than 0:
 * from none of them. */
int uet_pdc_host(const struct uet_pdc *pdc, const struct uet_in *in);
/* Refuses a packet that has no context. */
void uet_pds_refuse(struct uet_pds *pds, const struct uet_in *in,
		    const struct uet_pds_head *to, uint8_t code);

/* uet_pdc.c: a context's life. */
void uet_pdc_become(struct uet_pdc *pdc, enum uet_pdc_state state);
struct uet_pdc *uet_pdc_accept(struct uet_pds *pds, const struct uet_in *in,
			       const struct uet_pkt *pkt, uint64_t now);
/* It is over: `done` for what is open, `closed`, quarantine. */
void uet_pdc_end(struct uet_pdc *pdc, int err, uint8_t code, uint64_t now);
void uet_pdc_free(struct uet_pdc *pdc);
void uet_pdc_try_close(struct uet_pdc *pdc, uint64_t now);
void uet_pdc_tick(struct uet_pdc *pdc, uint64_t now);
uint64_t uet_pdc_next_due(const struct uet_pdc *pdc);
/* Whether the peer may still be sent to, and it isn't over for our side. */
static inline bool uet_pdc_live(const struct uet_pdc *pdc)
{
	return pdc->state > UET_PDC_FREE && pdc->state < UET_PDC_WAIT;
}

/* uet_pdc_tx.c: from uet_pdc_send to the wire. */
void uet_tx_init(struct uet_pdc *pdc, uint32_t start, uint64_t now);
int uet_tx_control(struct uet_pdc *pdc, uint8_t ctl, uint64_t now);
bool uet_tx_next(struct uet_pdc *pdc, uint64_t now, struct uet_out *out);
void uet_tx_tick(struct uet_pdc *pdc, uint64_t now);
uint64_t uet_tx_due(const struct uet_pdc *pdc);
/* A flying one is taken for lost; says so to the window and the path. */
void uet_tx_lose(struct uet_pdc *pdc, struct uet_slot *s, enum uet_path_news news,
		 uint64_t now);
/* Takes a slot from the list that it is on. */
void uet_tx_unlink(struct uet_pdc *pdc, struct uet_slot *s);
void uet_tx_push(struct uet_pdc *pdc, struct uet_slots *list, struct uet_slot *s);
/* Bytes that both sides count for it. */
uint32_t uet_tx_size(const struct uet_slot *s);
/* The same of a request with so much payload. */
uint32_t uet_nominal(uint32_t payload);
/* Timers, after packets left or were spoken of; `news`: some arrived. */
void uet_tx_rearm(struct uet_pdc *pdc, bool news, uint64_t now);
/* Calls `done`; the slot is DONE. */
void uet_tx_done(struct uet_pdc *pdc, uint32_t psn, int err, const struct uet_pkt *resp);
void uet_tx_fail(struct uet_pdc *pdc, int err);

static inline struct uet_slot *uet_tx_slot(const struct uet_pdc *pdc, uint32_t psn)
{
	return &pdc->tx.slot[psn & (pdc->pds->config.window - 1)];
}

/* It was given out, and isn't over. */
static inline bool uet_tx_has(const struct uet_tx *tx, uint32_t psn)
{
	return psn - tx->una < tx->next - tx->una;
}

/* uet_pdc_ack.c: what the peer says of what was sent. */
bool uet_ack_plausible(const struct uet_pdc *pdc, const struct uet_pds_head *h);
void uet_ack_rx(struct uet_pdc *pdc, const struct uet_in *in, const struct uet_pkt *pkt,
		uint64_t now);
void uet_nack_rx(struct uet_pdc *pdc, const struct uet_pkt *pkt, uint64_t now);

/* uet_pdc_rx.c: what the peer sends. */
void uet_rx_init(struct uet_pdc *pdc, uint32_t start);
void uet_rx_request(struct uet_pdc *pdc, const struct uet_in *in,
		    const struct uet_pkt *pkt, uint64_t now);
void uet_rx_control(struct uet_pdc *pdc, const struct uet_in *in,
		    const struct uet_pkt *pkt, uint64_t now);
bool uet_rx_next(struct uet_pdc *pdc, uint64_t now, struct uet_out *out);

#endif
