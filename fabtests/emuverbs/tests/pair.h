/* SPDX-License-Identifier: BSD-2-Clause */
/* Two ends of a queue pair in one process, for tests of the emulated library. */
#ifndef WEFT_FABTESTS_EMUVERBS_PAIR_H
#define WEFT_FABTESTS_EMUVERBS_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define END_BYTES (1u << 20)
#define END_ALL                                                                      \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* What a test chooses; zeros are what is usual. */
struct end_wish {
	unsigned device;
	int cqe;
	unsigned sends;
	unsigned receives;
	bool shared;  /* receive queue */
	bool channel; /* for completions */
	bool sq_sig_all;
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *bytes; /* END_BYTES */
	uint32_t psn;
	union ibv_gid gid;
};

/* A network of this process's own, with that file. Before anything else. */
void net_begin(const char *config);

void end_open(struct end *e, const struct end_wish *wish);
void end_close(struct end *e);
void end_qp(struct end *e, const struct end_wish *wish);

/* One step each; they return what ibv_modify_qp does. */
int end_init(struct end *e);
int end_rtr(struct end *e, const struct end *peer, int min_rnr_timer);
int end_rts(struct end *e, int rnr_retry);
int end_state(struct end *e, enum ibv_qp_state state);
/* All of them. */
void end_join(struct end *a, struct end *b);

/* From `at` to the peer's `to`. */
int end_write(struct end *e, const struct end *peer, uint64_t id, size_t at, size_t len,
	      size_t to);
int end_write_imm(struct end *e, const struct end *peer, uint64_t id, size_t len,
		  uint32_t imm);
int end_read(struct end *e, const struct end *peer, uint64_t id, size_t at, size_t len,
	     size_t from);
int end_send(struct end *e, uint64_t id, size_t at, size_t len);
int end_receive(struct end *e, uint64_t id, size_t at, size_t len);
struct ibv_sge end_sge(const struct end *e, size_t at, size_t len);

/* One completion; false: none within the deadline. */
bool end_poll(struct end *e, struct ibv_wc *wc);
/* None comes for a while. */
bool end_quiet(struct end *e);
/* One event; -1: none within the deadline. It is acknowledged. */
int end_event(struct end *e);

#endif
