/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packet delivery: contexts (PDCs) between this endpoint and its peers, over which
 * packets arrive exactly once, in any order (RUD) or in order (ROD), however the network
 * loses, repeats, mixes up or delays them.
 *
 * Pure: no socket, no clock, no thread, no allocation after uet_pds_open. Packets come in
 * by uet_pds_rx, what is to be sent is pulled by uet_pds_next until it says no, time
 * passes by the `now` of every call (ns, never backwards) and uet_pds_tick. One caller at
 * a time. Events are raised from inside the calls that say so; an event may call
 * uet_pdc_send, _respond and _close of any context, and nothing else of this file.
 *
 * A context carries requests both ways. Who dialled it is its initiator, and the only one
 * that closes it; the other end can ask. Two that dial each other have two contexts.
 *
 * Exactly once is true of a context. When one is lost (reset, reaped, timed out), what
 * was open on it may have arrived: whoever sends it again on another must number it
 * (rule H1).
 *
 * Errors are negative errno values.
 */
#ifndef WEFT_UET_PDS_H
#define WEFT_UET_PDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/uet/uet_nscc.h"
#include "prov/wire/uet/uet_path.h"
#include "prov/wire/uet/uet_wire.h"

struct uet_pds;
struct uet_pdc;

/* Bytes of a guaranteed response: header and data. */
#define UET_REPLY_MAX  48u
#define UET_WINDOW_MIN 8u
#define UET_WINDOW_MAX 4096u
/* Addresses that a peer may have besides the one that it is known by. */
#define UET_HOSTS_MORE 7u

/* Who sent a packet. `host` must be right in every packet (the datagram's source
 * address); `fep` tells the endpoints of a host apart. A packet with SYN needs both; in
 * others fep isn't looked at, since they name a context. */
struct uet_peer {
	uint8_t host[16];
	uint32_t fep;
};

/* What becomes of a request. */
enum uet_verdict {
	UET_TAKEN,    /* it has arrived; the default response */
	UET_REPLIED,  /* it has arrived; the response is in *reply, and is kept until the
		       * peer has it */
	UET_LATER,    /* it has arrived; uet_pdc_respond follows */
	UET_NO_BUFFER /* not taken: the peer sends it again in a while */
};

struct uet_reply {
	uint8_t next; /* UET_NEXT_RESP, _RESP_DATA, _RESP_SMALL */
	uint8_t len;
	uint8_t bytes[UET_REPLY_MAX];
};

struct uet_pds_events {
	/*
	 * A request of the peer: once for each, or until it is taken. pkt is valid until
	 * the callback returns. Where `room` is false UET_REPLIED and UET_LATER may not
	 * be returned: what would need them is refused by UET_NO_BUFFER.
	 */
	enum uet_verdict (*request)(void *arg, struct uet_pdc *pdc,
				    const struct uet_pkt *pkt, bool room,
				    struct uet_reply *reply);
	/*
	 * A packet that was given to uet_pdc_send is over, once each, and its payload
	 * isn't read any more. err 0: it has arrived; resp is the response, or NULL for
	 * the default one (its pds part isn't valid). Else the context's error.
	 */
	void (*done)(void *arg, struct uet_pdc *pdc, void *cookie, int err,
		     const struct uet_pkt *resp);
	/* A peer opened a context: its first packet follows. Not 0: refused. May set
	 * uet_pdc_ctx. */
	int (*opened)(void *arg, struct uet_pdc *pdc, const struct uet_pkt *pkt);
	/*
	 * A context is over: every packet was reported before, and pdc isn't valid after
	 * this returns. 0: closed by its initiator; -ECONNRESET: the peer doesn't have it
	 * (any more); -ETIMEDOUT: no answer for config.give_up; -EPROTO: the peer broke a
	 * rule; or what uet_pdc_abort was given. `code`: the peer's nack, or 0.
	 */
	void (*closed)(void *arg, struct uet_pdc *pdc, int err, uint8_t code);
};

/* Times in ns; a field that is 0 gets the default in brackets. */
struct uet_pds_config {
	uint32_t contexts;  /* of all kinds, those in quarantine included [256] */
	uint32_t half_open; /* of them, by peers that haven't shown yet that they get our
			     * packets [contexts / 4] */
	uint32_t per_peer;  /* of them, opened by one host and fep [8] */
	uint32_t window;    /* packets under way in each direction; power of two [256].
			     * The same at all ends if it is less than 128 */
	uint32_t responses; /* guaranteed ones that a context keeps [16] */
	uint32_t mtu;	    /* payload; the same at all ends [4096] */
	uint32_t piece; /* bytes that leave as one, if their packets are handed out one
			 * after the other; 0: nothing waits for such a piece */
	uint32_t ack_bytes;	 /* an ack is asked for after so many [16384] */
	uint32_t ack_most;	 /* and due after so many, whoever asks [ack_bytes] */
	uint64_t ack_delay;	 /* and after this time [100 us] */
	uint64_t rto_init;	 /* [20 ms] */
	uint64_t rto_max;	 /* [500 ms] */
	uint64_t give_up;	 /* without any answer [20 s] */
	uint64_t nack_wait;	 /* until a refused packet goes again [200 us] */
	uint64_t half_open_time; /* until such a context is dropped [10 s] */
	uint64_t close_time;	 /* until a peer that was asked must have closed [2 s] */
	uint64_t quarantine;	 /* of a closed context's ids [2 s] */
	/* ack_bytes is set from the above; mtu, if it is 0, too */
	struct uet_nscc_config cc;
	struct uet_path_config path; /* [8 paths, bursts of 4, 3 strikes, 10 ms to 1 s] */
	uint32_t path_reorder; /* packets by which one on the same path may be overtaken
				* before it is taken for lost [3] */
	/* Numbers nobody can guess. */
	uint64_t (*random)(void *arg);
	const struct uet_pds_events *events;
	void *arg; /* of random and events */
};

/* One packet to be delivered. */
struct uet_send {
	const void *ses; /* header with extension: copied */
	uint32_t ses_len;
	uint8_t next;	      /* UET_NEXT_REQ_STD, or RESP_DATA back to who asked */
	bool ar;	      /* acknowledge at once: last of what is under way */
	const void *payload;  /* handed on as it is; read until `done` */
	uint32_t payload_len; /* at most config.mtu */
	void *cookie;
};

enum uet_class { UET_CLASS_DATA, UET_CLASS_CONTROL };

#define UET_PATH_ECHO UINT32_MAX

/* A packet to be put on the wire: head, then payload. */
struct uet_out {
	uint8_t head[UET_HEAD_MAX]; /* first: who sends may put something before it */
	struct uet_peer peer;
	struct uet_pdc *pdc; /* NULL: an answer to somebody without a context */
	enum uet_class cls;
	uint32_t path;	  /* of config.path.paths; UET_PATH_ECHO: of the packet that it
			   * answers, which came with `entropy` */
	uint32_t entropy; /* its low half; the high: from which of the peer's addresses, 0
			   * that it is known by, 1 the first of uet_pdc_add_host */
	uint32_t head_len;
	const void *payload; /* as given to uet_pdc_send */
	uint32_t payload_len;
	void *slot; /* for uet_pds_left */
	bool last;  /* of a turn: what its context sends next takes another path */
};

/* How a packet came. */
struct uet_in {
	struct uet_peer from;
	uint16_t entropy; /* its UDP source port */
	bool ce;	  /* it was marked (ECN) */
	uint64_t stamp;	  /* ns: when it reached this host, at most now; 0: now */
};

struct uet_pds_stats {
	uint64_t sent;	 /* packets of requests, first time */
	uint64_t resent; /* and again */
	uint64_t timeouts;
	uint64_t inferred; /* taken for lost because later ones came through */
	uint64_t probes;
	uint64_t received; /* requests that were new */
	uint64_t duplicates;
	uint64_t refused;  /* nacks sent */
	uint64_t refusals; /* nacks received */
	uint64_t acks_out;
	uint64_t acks_in;
	uint64_t stray;	 /* dropped: of no context, or not what a context can get */
	uint64_t opened; /* by peers */
	uint64_t dialled;
	uint64_t closed;
	uint64_t failed;
	uint64_t reaped;
	uint64_t unanswered; /* nacks that had no room */
};

/* 0, -EINVAL (configuration), -ENOMEM. One piece of memory, for all that ever is. */
int uet_pds_open(const struct uet_pds_config *config, struct uet_pds **pds);
/* Raises no event. */
void uet_pds_close(struct uet_pds *pds);
size_t uet_pds_size(const struct uet_pds_config *config);
const struct uet_pds_stats *uet_pds_stats(const struct uet_pds *pds);
/* The configuration with its defaults filled in. */
const struct uet_pds_config *uet_pds_config(const struct uet_pds *pds);

/*
 * Opens a context to a peer; the first packet opens it there. -EAGAIN: all are in use
 * (some may be in quarantine).
 */
int uet_pdc_dial(struct uet_pds *pds, const struct uet_peer *peer, bool ordered,
		 void *ctx, uint64_t now, struct uet_pdc **pdc);
/* How many requests uet_pdc_send would take now; and how many UET_NEXT_RESP_DATA, for
 * which some of the ring is kept. */
uint32_t uet_pdc_room(const struct uet_pdc *pdc);
uint32_t uet_pdc_room_back(const struct uet_pdc *pdc);
/* As many packets wait to leave as the window takes: what is long waits with its owner
 * meanwhile, or something short that comes after it would leave behind all of it. */
bool uet_pdc_backlogged(const struct uet_pdc *pdc);
/* Nothing that its peer sent before this one is missing. Whoever needs something of his
 * own for each of a kind of request must keep the last of it for such a one: the others
 * may wait until it is answered, at both ends. */
bool uet_pdc_lowest(const struct uet_pdc *pdc, uint32_t psn);
/* How much payload full packets of this context have, at most config.mtu, which it is
 * until then: by it the window tells whether another may leave, and what is the least. */
void uet_pdc_set_payload(struct uet_pdc *pdc, uint32_t payload);
/* All its paths are one way, of which others have no part: turns may be as long as the
 * window lets them. */
void uet_pdc_one_way(struct uet_pdc *pdc);
/* 0; -EAGAIN: no room (`done` makes some); -EINVAL: lengths; -ESHUTDOWN: it closes. */
int uet_pdc_send(struct uet_pdc *pdc, const struct uet_send *send, uint64_t now);
/* The memory of packets with that cookie is given back although they may be under way:
 * where they go again it is without payload, and with this header. Who has had one sees
 * no difference. */
void uet_pdc_empty(struct uet_pdc *pdc, const void *cookie, const void *ses,
		   uint32_t ses_len);
/* After UET_LATER: the response to that request; NULL: the default one. -ENOENT: there is
 * no such request. */
int uet_pdc_respond(struct uet_pdc *pdc, uint32_t psn, const struct uet_reply *reply,
		    uint64_t now);
/* The initiator: closes once everything is through. The other end: asks for it, and
 * gives it up after config.close_time. `closed` follows either way. */
void uet_pdc_close(struct uet_pdc *pdc, uint64_t now);
/* Ends it from this side at once: `done` for all that is open and `closed`, both with
 * err, from inside. */
void uet_pdc_abort(struct uet_pdc *pdc, int err, uint64_t now);

/* Packets of the peer may come from that address, too: who says so must be the peer, by
 * this context. -ENOSPC: there are UET_HOSTS_MORE. */
int uet_pdc_add_host(struct uet_pdc *pdc, const uint8_t host[16]);
/* uet_paths_try */
void uet_pdc_try_path(struct uet_pdc *pdc, uint32_t path, uint64_t now);

/* A packet that uet_pkt_parse accepted. Raises events. */
void uet_pds_rx(struct uet_pds *pds, const struct uet_in *in, const struct uet_pkt *pkt,
		uint64_t now);
/* The next packet to send, or false. What is handed out counts as sent: a caller that
 * can't send it now keeps it, or lets it be lost. */
bool uet_pds_next(struct uet_pds *pds, uint64_t now, struct uet_out *out);
/* It really left later than `now` was. Before the next packet comes in; as often as that
 * is known. `sure`: it is known when, so that its round trip may be measured. */
void uet_pds_left(const struct uet_out *out, uint64_t now, bool sure);
/* When uet_pds_tick has something to do; UINT64_MAX: never. */
uint64_t uet_pds_due(const struct uet_pds *pds);
/* Acks say from now on that this end can't keep up: so many 128ths of what arrives are
 * too much; 0: it can again. */
void uet_pds_press(struct uet_pds *pds, uint32_t pend);
/* Timers. Raises events. */
void uet_pds_tick(struct uet_pds *pds, uint64_t now);

void *uet_pdc_ctx(const struct uet_pdc *pdc);
void uet_pdc_set_ctx(struct uet_pdc *pdc, void *ctx);
const struct uet_peer *uet_pdc_peer(const struct uet_pdc *pdc);
bool uet_pdc_initiator(const struct uet_pdc *pdc);
bool uet_pdc_ordered(const struct uet_pdc *pdc);
/* Packets that were sent and are not known to have arrived, or wait to be sent. */
uint32_t uet_pdc_open_packets(const struct uet_pdc *pdc);
const struct uet_nscc *uet_pdc_nscc(const struct uet_pdc *pdc);
const struct uet_paths *uet_pdc_paths(const struct uet_pdc *pdc);
/* "syn", "established", ... for people. */
const char *uet_pdc_state_name(const struct uet_pdc *pdc);

#endif
