/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One endpoint with its objects, for benchmarks over any provider: plain libfabric calls,
 * the same for every provider. The endpoint is FI_EP_RDM with FI_MSG, FI_TAGGED and
 * FI_RMA, FI_THREAD_DOMAIN (unless another level is wanted), manual progress, one
 * completion queue for everything (FI_CQ_FORMAT_TAGGED), an address table with one peer.
 *
 * Whatever fails ends the process with a line on stderr and status 1.
 */
#ifndef WEFT_BENCH_NODE_H
#define WEFT_BENCH_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "bench/say.h"

enum {
	NODE_NAME_MAX = 128,
	NODE_WAIT_S = 30, /* for anything that one waits for */
};

/* What the peer must know; goes through shared memory or stays in the process. */
struct node_card {
	char name[NODE_NAME_MAX];
	size_t name_len;
};

/* What is not as usual. */
struct node_wants {
	enum fi_threading threading;
	bool directed; /* FI_DIRECTED_RECV */
	bool counter;  /* sends are counted as well */
	bool sleeps; /* who has nothing to do waits for the queue instead of polling it */
};

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *cntr; /* NULL unless sends are counted */
	struct fid_ep *ep;
	fi_addr_t peer;
	bool sleeps;
	/* Completions so far, counted by node_poll. */
	uint64_t tx_done, rx_done;
	/* Polls in a row that found nothing. */
	uint32_t idle;
	uint64_t idle_since; /* ns, set at the first look at the clock */
};

/* Memory that the node may send from and the peer may write into. */
struct node_region {
	struct fid_mr *mr;
	void *desc;
};

struct node_target {
	uint64_t addr, key;
};

/* Dies unless rc is 0 or more. */
void bench_must(ssize_t rc, const char *call);

/* wants: NULL for what is usual. */
void node_open(struct node *n, const char *provider, const struct node_wants *wants,
	       struct node_card *card);
/* Both nodes must be open. */
void node_join(struct node *n, const struct node_card *peer);
void node_close(struct node *n);

/* key: chosen by the caller, unique in the node; used where the provider gives none. */
void node_region_open(struct node *n, struct node_region *r, void *addr, size_t len,
		      uint64_t key, struct node_target *target);
void node_region_close(struct node_region *r);

/* Memory that the provider shares with peers (WEFT_FI_MEM_OPS); NULL: it has nothing of
 * the kind. */
void *node_shared_alloc(struct node *n, size_t len);
void node_shared_release(struct node *n, void *mem);

/* Drives progress, counts what has completed, and returns how much that was. After a
 * long time of nothing it lets others run, and in the end it dies. */
int node_poll(struct node *n);
void node_await_tx(struct node *n, uint64_t count);
void node_await_rx(struct node *n, uint64_t count);
/* After a post: true when it must be posted again (progress was driven). */
bool node_again(struct node *n, ssize_t rc, const char *call);

#endif
