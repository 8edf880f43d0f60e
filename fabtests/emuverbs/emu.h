/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the emulated library, and the one lock over all of them. A process
 * stands for a host: it has every device of the file, and one thread that does what
 * hardware does while the application is elsewhere.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_EMU_H
#define WEFT_FABTESTS_EMUVERBS_EMU_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "fabtests/emuverbs/packet.h"
#include "fabtests/emuverbs/setup.h"
#include "util/list.h"

/* A queue pair's number: which process, which of its queue pairs on that device. */
#define EMU_INDEX_BITS 14
#define EMU_SLOTS      (1u << (24 - EMU_INDEX_BITS))
#define EMU_INDEXES    (1u << EMU_INDEX_BITS)

struct emu_qp;
struct emu_conn;

struct emu_key_slot {
	struct emu_mr *mr;
	uint8_t tag; /* changes with each use of the slot */
	uint32_t next_free;
};

struct emu_dev {
	const struct emu_device *set;
	unsigned index;
	struct emu_qp **qp; /* EMU_INDEXES */
	unsigned qps;
	struct emu_key_slot *key;
	uint32_t keys;	   /* slots that exist */
	uint32_t free_key; /* 0: none; else a slot's index + 1 */
	unsigned mrs;
	uint64_t locked; /* bytes of whole pages that are registered */
	unsigned cqs;
	unsigned srqs;
	bool down;
	bool fatal;
	uint64_t posted;      /* segments, ever */
	struct list contexts; /* struct emu_context */
};

struct emu_host {
	bool loaded;
	bool running;
	pid_t pid;
	unsigned slot;
	int listen_fd;
	int epoll_fd;
	int wake_fd;
	pthread_t thread;
	struct emu_setup setup;
	struct emu_dev *dev; /* as many as the setup has */
	unsigned generation; /* how often this process's line was forked */
	struct list conns;
	struct list dead; /* connections to be freed by the thread */
	uint32_t cookies;
	uint64_t random;
	uint64_t began; /* ns */
	uint64_t due;	/* ns; when the thread must look again; UINT64_MAX: never */
};

extern struct emu_host emu;

/* Everything below is looked at and changed with it held, unless said otherwise. */
void emu_lock(void);
void emu_unlock(void);
/* Wait for, and say, that events were acknowledged or handed out. */
void emu_wait(void);
void emu_changed(void);

/* Something with a queue of events and a descriptor that is readable while there are any.
 */
struct emu_queue {
	int fd;
	unsigned generation; /* a forked process shares the descriptor, not the events */
	struct list events;
};

struct emu_event {
	struct list node;
	struct ibv_cq *cq; /* of a completion channel */
	struct ibv_async_event async;
};

struct emu_context {
	struct list node; /* of its device */
	struct emu_dev *dev;
	struct emu_queue async;
	unsigned objects;
	struct verbs_context ibv;
};

struct emu_channel {
	struct ibv_comp_channel ibv;
	struct emu_queue queue;
};

struct emu_pd {
	struct ibv_pd ibv;
	struct emu_dev *dev;
	unsigned users;
};

struct emu_mr {
	struct ibv_mr ibv;
	struct emu_pd *pd;
	uint64_t iova;
	unsigned access;
	uint32_t slot; /* from 1 */
	uint32_t key;  /* the local one */
	void *map;     /* a mapping of its own, of a descriptor's memory; */
	size_t map_len;
};

struct emu_rwqe {
	uint64_t id;
	unsigned sges;
	struct ibv_sge *sge;
};

/* Receives: of a queue pair or shared. A place is free again when its completion was
 * polled. */
struct emu_rq {
	struct emu_rwqe *ring;
	struct ibv_sge *sge;
	unsigned size;
	unsigned max_sge;
	unsigned head;
	unsigned posted; /* and not yet taken */
	unsigned used;	 /* and not yet polled */
};

struct emu_srq {
	struct ibv_srq ibv;
	struct emu_pd *pd;
	struct emu_rq rq;
	unsigned limit;
	unsigned users;
	unsigned events;
};

struct emu_cqe {
	struct ibv_wc wc;
	struct emu_qp *qp;
	struct emu_rq *rq;  /* a place of it becomes free */
	unsigned sq_places; /* that become free */
};

struct emu_cq {
	struct ibv_cq ibv;
	struct emu_dev *dev;
	struct emu_cqe *ring;
	unsigned size;
	unsigned head;
	atomic_uint count; /* read without the lock by who polls */
	bool armed;
	bool solicited_only;
	bool overrun;
	unsigned users;
	unsigned comp_events;  /* handed out, ever */
	unsigned async_events; /* handed out, ever */
};

struct emu_swqe {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	bool signaled;
	bool fence;
	bool solicited;
	bool gone; /* sent to its end */
	bool done; /* and answered */
	bool bad;  /* its own memory is not what it should be */
	bool inlined;
	int fault; /* enum emu_action; -1: none */
	uint32_t immediate;
	uint32_t key;
	uint64_t remote;
	uint64_t compare;
	uint64_t swap;
	uint64_t length;
	uint64_t sent;
	uint64_t got;	/* of a read */
	uint64_t hold;	/* ns: others may go before until then */
	bool backwards; /* its last bytes go first */
	unsigned sges;
	struct ibv_sge *sge;
	uint8_t *data; /* that was inline */
};

/* Who asks. Messages are numbered from 0 by the order in which they were posted. */
struct emu_req {
	struct list node; /* of its connection, while there is something to send */
	struct emu_conn *conn;
	struct emu_swqe *ring;
	struct ibv_sge *sge;
	uint8_t *data;
	uint32_t una;	  /* the oldest that is not complete */
	uint32_t next;	  /* to be sent */
	uint32_t tail;	  /* to be posted */
	unsigned used;	  /* places, until completions were polled */
	unsigned since;	  /* places since the last completion */
	unsigned reading; /* reads and atomics on their way */
	uint32_t cookie;
	uint32_t attempt;
	unsigned rnr_left;
	uint64_t until; /* ns; nothing is sent before */
};

struct emu_answer {
	uint8_t kind; /* EMU_ACK, EMU_NAK, EMU_DATA, EMU_OLD */
	uint8_t code;
	uint8_t flags;
	uint32_t number;
	uint32_t key;
	uint64_t remote;
	uint64_t length;
	uint64_t sent;
	uint64_t old;
};

/* Messages on their way at once on a device that places out of order. */
#define EMU_WINDOW 16u

/* One of them, where it arrives. */
struct emu_arrival {
	bool done;
	bool refused; /* with `code`, when its turn comes */
	uint8_t code;
	uint64_t got;
};

/* Who answers. */
struct emu_rsp {
	struct list node; /* of its connection, while there is something to answer */
	struct emu_conn *back;
	uint32_t expect;
	uint64_t got; /* of message `expect` */
	struct emu_arrival arrival[EMU_WINDOW];
	uint32_t cookie;
	bool skip; /* what was sent in attempt `skipped`: there was no receive */
	uint32_t skipped;
	bool heard;
	bool taken; /* a receive, into rwqe */
	struct emu_rwqe rwqe;
	struct emu_answer *queue;
	unsigned size;
	unsigned first;
	unsigned count;
	unsigned reading;
};

struct emu_qp {
	struct ibv_qp_ex ibv; /* .qp_base is what the application has */
	struct emu_dev *dev;
	struct emu_pd *pd;
	bool mixed; /* it places out of order */
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint8_t own_address[16];
	uint8_t peer_address[16];
	struct emu_req req;
	struct emu_rsp rsp;
	struct emu_rq rq;
	struct list timed; /* of those with req.until */
	unsigned events;   /* handed out, ever */
};

static inline struct ibv_qp *emu_qp_ibv(struct emu_qp *qp)
{
	return &qp->ibv.qp_base;
}

static inline struct emu_qp *emu_qp_of(struct ibv_qp *qp)
{
	return container_of(qp, struct emu_qp, ibv.qp_base);
}

static inline struct emu_cq *emu_cq_of(struct ibv_cq *cq)
{
	return container_of(cq, struct emu_cq, ibv);
}

static inline struct emu_srq *emu_srq_of(struct ibv_srq *srq)
{
	return container_of(srq, struct emu_srq, ibv);
}

static inline struct emu_pd *emu_pd_of(struct ibv_pd *pd)
{
	return container_of(pd, struct emu_pd, ibv);
}

static inline struct emu_context *emu_context_of(struct ibv_context *c)
{
	return container_of(c, struct emu_context, ibv.context);
}

static inline enum ibv_qp_state emu_qp_state(struct emu_qp *qp)
{
	return qp->ibv.qp_base.state;
}

static inline struct emu_rq *emu_qp_rq(struct emu_qp *qp)
{
	return qp->ibv.qp_base.srq ? &emu_srq_of(qp->ibv.qp_base.srq)->rq : &qp->rq;
}

struct emu_dev *emu_dev_of(struct ibv_device *device);

/* What the library exports. */
#define EMU_API __attribute__((visibility("default")))

uint64_t emu_now(void); /* ns */
uint32_t emu_random(uint32_t below);
/* The thread looks again at `when` (ns) at the latest. */
void emu_due(uint64_t when);

#endif
