/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the black-box tests of the provider share: cases that run in two forked processes,
 * an endpoint with its objects, and waits that have a deadline.
 *
 * A case is two functions, one for each process ("side"). The parent never calls
 * libfabric; it forks both sides, waits for them until the case's deadline, and prints
 * one TAP line. A side reports what is wrong by side_check or side_die; its exit status
 * decides.
 */
#ifndef WEFT_FABTESTS_OWN_UTIL_H
#define WEFT_FABTESTS_OWN_UTIL_H

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

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define API_VERSION FI_VERSION(1, 17)
/* For one completion: more than anything needs, and than the 10 s for which the provider
 * tries to reach a peer that may still be starting. */
#define WAIT_MS	     30000
#define CASE_SECONDS 180 /* for both sides of a case: several such waits */

/* What a node asks of the provider; zero is the default of each. */
struct want {
	uint64_t caps; /* 0: FI_MSG | FI_TAGGED */
	int mr_mode;
	uint64_t tx_op_flags;
	uint64_t msg_order;
	enum fi_wait_obj wait_obj; /* of the completion queue; FI_WAIT_SET: of the set */
	enum fi_progress progress;
	bool selective; /* bind with FI_SELECTIVE_COMPLETION */
	bool stranger;	/* do not put the peer into the address vector */
	bool counters;
	bool automatic;	      /* progress by a thread of the provider */
	bool remote_counters; /* of peers' writes and reads */
	const char *service;  /* NULL: an ephemeral port */
};

struct node {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_wait *wait_set;	    /* only with FI_WAIT_SET */
	struct fid_cntr *tx_cntr, *rx_cntr; /* only with want.counters */
	struct fid_ep *ep;
	struct fid_cntr *write_cntr, *read_cntr; /* only with remote_counters */
	char name[64];
	size_t name_len;
	fi_addr_t self, peer;
};

/* One of the two processes of a case. */
struct side {
	int role;	 /* 0 or 1 */
	int sock;	 /* to the other side */
	pid_t peer_pid;	 /* of the other side; 0 in role 1 until node_open or side_meet */
	const void *arg; /* the case's */
	int failed;
	struct node node;
};

struct test_case {
	const char *name;
	void (*run[2])(struct side *s);
	const void *arg;
	int seconds;	  /* deadline; 0: CASE_SECONDS */
	bool killed;	  /* side 1 is expected to die by SIGKILL */
	bool needs_weft;  /* about this provider's own ways: skipped for others */
	const char *skip; /* not run, for this reason */
};

/* ---- program */

/* Reads --provider NAME and WEFT_TEST_PROVIDER; moves into a network namespace and a
 * /dev/shm of its own where that is allowed. First call of main. */
void test_init(int argc, char **argv);
const char *test_provider(void);
bool test_is_weft(void);
bool test_is_isolated(void);
/* suffix: added to each name, or "". */
void cases_run(const struct test_case *cases, size_t count, const char *suffix);
/* Run in both sides before each later case; NULL: nothing. */
void cases_before(void (*before)(struct side *s));
/* Last: the plan, and main's value. */
int test_done(void);

/* ---- sides */

/* false and a diagnostic line when the condition does not hold. */
__attribute__((format(printf, 3, 4))) bool side_check(struct side *s, bool good,
						      const char *fmt, ...);
bool side_check_u64(struct side *s, uint64_t got, uint64_t want, const char *what);
__attribute__((noreturn, format(printf, 2, 3))) void side_die(struct side *s,
							      const char *fmt, ...);
/* Ends the process as "skipped" for providers other than weft, as failed for weft. */
__attribute__((noreturn, format(printf, 2, 3))) void side_lacks(struct side *s,
								const char *fmt, ...);
/* side_die unless rc is 0 or more. */
void side_must(struct side *s, ssize_t rc, const char *call);
/* To and from the other side; receiving drives the node's progress if there is one. */
void side_tell(struct side *s, const void *data, size_t len);
void side_hear(struct side *s, void *data, size_t len);
/* The same without any libfabric call. */
void side_hear_passive(struct side *s, void *data, size_t len);
/* Both sides have come here. */
void side_meet(struct side *s);
/* Whether the system lets this side read the other's memory. Behind side_meet. */
bool side_can_attach(struct side *s);

/* ---- nodes */

struct fi_info *node_hints(const struct want *want);
/* Everything up to the address vector, and from there to an enabled endpoint. */
void node_open_av(struct side *s, struct node *n, const struct want *want);
void node_open_ep(struct side *s, struct node *n, const struct want *want);
/* Both, without the other side. */
void node_open_alone(struct side *s, struct node *n, const struct want *want);
/* And then addresses are exchanged with the other side, which must call it as well. */
void node_open(struct side *s, const struct want *want);
void node_close(struct side *s, struct node *n);

/* A completion, good or bad. */
struct done {
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
	int err; /* 0 or a positive fi_errno */
	size_t olen;
};

/* The next completion; false when there is none within ms. */
bool node_next(struct side *s, struct done *d, int ms);
/* The next completion, which must be there, good, with these flags and context. */
void node_expect(struct side *s, struct done *d, uint64_t flags, const void *context);
/* Drives progress for that long; there must be no completion. */
void node_quiet(struct side *s, int ms);
void node_progress(struct node *n);
/* After a post: true when it has to be posted again; dies of other errors. */
bool node_again(struct side *s, ssize_t rc, const char *call);

/* ---- memory and time */

void *mem_new(size_t len);	  /* never NULL; page aligned, filled with 0xee */
void *mem_new_shared(size_t len); /* with processes that are forked later */
void mem_free(void *p, size_t len);
void mem_fill(void *p, size_t len, uint32_t seed);
/* false and a diagnostic line naming the first byte that differs. */
bool mem_check(struct side *s, const void *p, size_t len, uint32_t seed,
	       const char *what);
uint64_t now_ms(void);
void sleep_ms(int ms);

extern const size_t sizes_all[];
extern const size_t sizes_count;
#define SIZE_MOST (8u << 20)

#endif
