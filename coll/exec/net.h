/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network of a context: one endpoint of any RDM provider with its CQ and address
 * table. Owns the libfabric objects and the pool of operation contexts; knows nothing of
 * plans. Not thread-safe: the context's lock covers it.
 */
#ifndef WEFT_EXEC_NET_H
#define WEFT_EXEC_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "coll/exec/pool.h"
#include "weft/weft.h"

#define NET_API_VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

#define NET_NAME_MAX 256 /* bytes of a raw endpoint address */
#define NET_IOV_MAX  8	 /* pieces of one operation that we ever use */

/* What the network can do for transfers; every rank runs with the least of all. */
struct net_caps {
	bool put;	 /* RMA write with 8 bytes of remote CQ data */
	bool put_pieces; /* FI_DELIVERY_COMPLETE works: a put may have several pieces */
	bool get;	 /* RMA reads */
	bool data;	 /* messages carry 8 bytes of remote CQ data */
	bool truncates;	 /* a message longer than its receive is an error of that one only
			  */
	size_t message_max; /* a pair of at most so many bytes is always a message */
	size_t long_max;    /* the same where the plan does not prefer puts */
};

struct net_attr {
	const char *provider; /* NULL: FI_PROVIDER, else the best that fits */
	const char *domain;   /* NULL: the first */
	bool no_put;	      /* tests: messages only */
	bool no_data;	      /* tests: messages without CQ data */
	size_t transfer_max;  /* tests: bytes of a put or get of a window; 0: the
				 provider's */
	bool no_get;	      /* tests: gets by messages */
	bool per_call;	      /* tests: as if the provider pinned what is registered */
	size_t message_max;   /* tests: bytes, also of long ones; 0: from the provider */
	uint64_t choices;     /* hash of what algorithms are chosen by; 0: built in */
	uint8_t lines;	      /* enum lines_wish */
	uint32_t node_ranks;  /* so many are taken for a node; 0: those of one kernel */
};

/* How an operation ended. */
struct net_result {
	int err;       /* 0, or a positive FI_E... value */
	size_t len;    /* bytes received; for FI_ETRUNC the bytes that did not fit */
	bool has_data; /* a message that carried data */
	uint64_t data;
	const char *text; /* the provider's words; valid during the call only */
};

/* The connection broke under the operation. */
static inline bool net_broke(const struct net_result *result)
{
	return result->err == FI_ENOTCONN || result->err == FI_ECONNABORTED ||
	       result->err == FI_ECONNRESET;
}

struct net_op;
typedef void (*net_done_fn)(struct net_op *op, const struct net_result *result);

/* One operation in flight. Its memory is the provider's until done is called. */
struct net_op {
	struct fi_context2 fi; /* first: op_context of the provider */
	net_done_fn done;      /* releases or reuses the op */
	void *owner;
	int32_t peer; /* rank, or -1 */
};

struct net {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	/* A random word of all ranks of the context, and of no other: it is in each tag,
	 * remote CQ data word, control message and, where we choose it, key. The address
	 * of a rank that died may be ours next, and its peers may not know yet. 0 until
	 * the ranks have met. */
	uint64_t job;
	fi_addr_t *addr; /* by rank */
	int32_t size;
	struct net_caps caps;
	bool mr_local;	   /* local buffers must be registered */
	bool mr_prov_key;  /* the provider chooses keys */
	bool mr_virt_addr; /* remote addresses are virtual addresses, not offsets */
	bool taken;	   /* the endpoint's name is in use */
	bool mr_allocated; /* registration needs memory that stays mapped */
	size_t iov_limit;
	size_t transfer_max; /* bytes of one operation */
	struct pool ops;
	void (*on_data)(void *arg, uint64_t word); /* a put's remote CQ data arrived */
	void *arg;
};

/* PROVIDER (the detail lists those there are), NOMEM. */
enum weft_result net_open(const struct net_attr *attr, struct net *net);
void net_close(struct net *net);

/* Own address; name has NET_NAME_MAX bytes. */
enum weft_result net_name(struct net *net, void *name, uint32_t *len);

/* Enters rank's address; ranks come in order from 0. */
enum weft_result net_peer_add(struct net *net, int32_t rank, const void *name);
enum weft_result net_peers_reserve(struct net *net, int32_t size);

/* "tcp;ofi_rxm, shm": the RDM providers of this machine that would do, as far as
 * FI_PROVIDER lets libfabric show them; "none" where there is none. */
void net_provider_list(char *text, size_t len);
/* All of them, for the sentence of an error. Takes up to some seconds; says so where it
 * cannot look. */
void net_provider_list_all(char *text, size_t len);

/* NULL when memory ran out. The pool grows, so that in steady state nothing is allocated.
 * The caller fills in what it owns. */
static inline struct net_op *net_op_alloc(struct net *net)
{
	return pool_get(&net->ops);
}

static inline void net_op_release(struct net *net, struct net_op *op)
{
	pool_put(&net->ops, op);
}

/* Handles what has completed; returns how many completions, or -FI_E... of the CQ. */
int net_progress(struct net *net);

#endif
