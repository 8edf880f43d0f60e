/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RDMA devices of this host that are used: rails 0 to R-1, each one port of a device
 * with a context and a protection domain of its own. Opened once for a domain, read by
 * all its endpoints. What changes afterwards is whether a rail is up, and what it is
 * reached by: an event of its port may be read in any thread of the domain while helper
 * threads of its endpoints look for a path.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_DEV_H
#define WEFT_WIRE_VERBS_VERBS_DEV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/profile.h"
#include "prov/dqplb/rails.h"
#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs_card.h"
#include "prov/wire/verbs/verbs_lib.h"
#include "topo/fabric/place.h"

#define VERBS_ERROR_MAX 400

/* What was asked, what was found, what to do. */
struct verbs_error {
	char text[VERBS_ERROR_MAX];
};

/* What the user says; texts: NULL, not said. verbs_want_read fills it from the options.
 */
struct verbs_want {
	const char *rails;	/* FI_WEFT_RAILS */
	const char *lanes;	/* FI_WEFT_LANES */
	const char *profile;	/* FI_WEFT_PROFILE */
	const char *fabric_map; /* FI_WEFT_FABRIC_MAP: a file */
	const char *host;	/* FI_WEFT_FABRIC_HOST: this host's name in it */
	const char *gid_index;	/* FI_WEFT_GID_INDEX */
	const char *auth_key;	/* FI_WEFT_AUTH_KEY: for verbs_auth_open */
	uint16_t pkey_index;	/* FI_WEFT_PKEY_INDEX */
	uint8_t service_level;	/* FI_WEFT_SERVICE_LEVEL */
	uint8_t hop_limit;	/* FI_WEFT_HOP_LIMIT */
	enum prov_ooo ooo;	/* FI_WEFT_VERBS_OOO */
	enum prov_fork fork;	/* FI_WEFT_VERBS_FORK */
	bool native;		/* FI_WEFT_VERBS_ATOMICS */
	bool shm;		/* FI_WEFT_SHM */
};

void verbs_want_read(struct verbs_want *want);

/* What a rail's device can do. */
struct verbs_limits {
	uint32_t qps;
	uint32_t qp_wr;	  /* of a send or receive queue */
	uint32_t sge;	  /* of one work request, both directions */
	uint32_t inlined; /* bytes of a send that needn't be registered */
	uint32_t cqs;
	uint32_t cqe;
	uint32_t srqs; /* 0: none */
	uint32_t srq_wr;
	uint32_t rd_atomic;	 /* reads that a queue pair serves at a time */
	uint32_t init_rd_atomic; /* that it has under way */
	uint32_t mrs;
	uint64_t mr_size;
	uint64_t max_message;	/* bytes, of the port */
	bool port_active_event; /* tells when a port comes back */
	bool odp;		/* registers memory on demand (RC read and write) */
	bool odp_all;		/* and all memory at once */
	bool in_order; /* a queue pair's bytes land in order, the last one last */
	bool atomic;   /* atomic among all queue pairs of the device */
};

/* What peers reach a rail by: all of one time. */
struct verbs_reach {
	uint8_t kind; /* enum verbs_rail_kind: link layer and GID's family */
	uint8_t gid_index;
	uint16_t lid;	  /* InfiniBand */
	uint32_t ifindex; /* RoCE: its network interface; 0: not known */
	bool global;	  /* a GRH is needed: always on RoCE */
	enum ibv_mtu mtu; /* active */
	union ibv_gid gid;
};

struct verbs_rail {
	char name[DQPLB_RAIL_NAME + 1]; /* the device's, "mlx5_0" */
	uint8_t port;
	uint8_t number; /* of the fabric map, or the index among the rails */
	uint8_t sl;
	uint8_t hop_limit;
	uint16_t pkey_index;
	uint16_t pkey;
	uint32_t ooo_depth; /* verbs_ooo_depth; 0: none, or not wanted */
	uint64_t speed;	    /* Mbit/s, as the port says */
	struct verbs_limits limits;
	struct ibv_context *context;
	struct ibv_pd *pd;
	int async_fd;	  /* the context's; non-blocking. Rails of one device share it */
	bool software;	  /* no hardware behind it: processors of this host do its work */
	bool shared;	  /* context and pd are those of an earlier rail (another port) */
	_Atomic(bool) up; /* the port is active, as far as is known */
	_Atomic(bool) dead;	 /* so said its device, for good */
	_Atomic(uint32_t) moves; /* how often it came to be reached by something else */
	pthread_mutex_t *looking, *moving; /* the device's */
	struct verbs_reach reach; /* `moving`: by verbs_rail_reach, verbs_rail_moved */
};

struct verbs_dev {
	const struct verbs_lib *lib;
	pthread_mutex_t looking; /* asking a port; only the next is taken with it */
	pthread_mutex_t moving;	 /* taken last, for a moment */
	uint32_t rails;		 /* 1 to DQPLB_RAILS_MAX */
	bool native;		 /* atomics are the device's, of the one rail (rule E4) */
	struct verbs_rail rail[DQPLB_RAILS_MAX];
	struct fabric_place place; /* of this host; host is always known */
	struct dqplb_profiles profiles;
};

/*
 * Opens the rails. 0; -FI_ENODATA: there is no device, no port that is up, or none that
 * was asked for; -FI_EINVAL: an option's value; -FI_ENOMEM: what can be locked is too
 * little, or there is no memory; -FI_EACCES; -FI_EIO. *error says it in words.
 */
int verbs_dev_open(const struct verbs_want *want, struct verbs_dev **dev,
		   struct verbs_error *error);
/* All that was made of its protection domains is gone. */
void verbs_dev_close(struct verbs_dev *dev);

/* What an asynchronous event of a device meant. */
enum verbs_event_kind {
	VERBS_EVENT_NONE,      /* nothing that matters here */
	VERBS_EVENT_PORT_DOWN, /* rail */
	VERBS_EVENT_PORT_UP,   /* rail; its LID and GID were read anew */
	VERBS_EVENT_MOVED,   /* rail: LID or GID changed, its queue pairs are of no use */
	VERBS_EVENT_DEVICE,  /* rail: the device is broken or gone */
	VERBS_EVENT_QP,	     /* qp: fatal, access or request error */
	VERBS_EVENT_QP_LAST, /* qp of a shared receive queue: its last receive is out */
	VERBS_EVENT_CQ,	     /* cq: overrun */
	VERBS_EVENT_SRQ	     /* srq: limit reached, or broken */
};

struct verbs_event {
	enum verbs_event_kind kind;
	enum ibv_event_type type;
	uint32_t rail;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_async_event raw;
};

/*
 * The next asynchronous event of the rail's context; false: none is waiting. Never
 * blocks. Of a device with several rails a port's event names the rail of that port. What
 * it names can't be destroyed before verbs_dev_event_end, which must follow: who destroys
 * it waits for that.
 */
bool verbs_dev_event(struct verbs_dev *dev, uint32_t rail, struct verbs_event *event);
void verbs_dev_event_end(struct verbs_dev *dev, struct verbs_event *event);

/* What the rail is reached by at this time. Any thread. */
struct verbs_reach verbs_rail_reach(const struct verbs_rail *rail);

/* The card's part of all rails: kind, number, GID, LID, MTU, reads served. Table keys are
 * the caller's to fill in. */
void verbs_dev_card(const struct verbs_dev *dev, struct verbs_card *card);

/* Of a rail that moved: what its part of the card says otherwise now. */
void verbs_dev_card_moved(const struct verbs_rail *rail, struct verbs_card_rail *card);

/* Says at FI_LOG_LEVEL=info which rails are used, and how links spread over them. */
void verbs_dev_log(const struct verbs_dev *dev);

/* The path MTU of two rails: the smaller one. */
enum ibv_mtu verbs_dev_mtu(const struct verbs_rail *rail,
			   const struct verbs_card_rail *peer);

/* The address by which this rail reaches a rail of a peer's card, for the move to RTR. */
void verbs_dev_path(const struct verbs_rail *rail, const struct verbs_card_rail *peer,
		    uint8_t traffic_class, struct ibv_ah_attr *ah);

/* Whether a queue pair of the rail can become ready to receive from there without waiting
 * (verbs_near.h); false: a little later. */
bool verbs_dev_near(const struct verbs_rail *rail, const struct verbs_card_rail *peer);

/*
 * Whether so little memory may be locked that no queue pair can be: *error says what the
 * limit is and where it is set. For errors with ENOMEM of registrations, too.
 */
bool verbs_memlock_low(uint64_t limit, bool privileged, struct verbs_error *error);
/* The same of this process. */
bool verbs_memlock_bad(struct verbs_error *error);

/*
 * For fi_getinfo: NULL where libibverbs loads and a port of a wanted rail is up, and
 * *names is "mlx5_0+mlx5_1" then; else why not, in words. Looks anew each time it is
 * called; the text is good until the thread calls it again.
 */
const char *verbs_dev_absent(const char **names);
/* Its rails, and how links to each distance spread over them: lines; as long as there is
 * room. Nothing where there are none. */
void verbs_dev_describe(char *text, size_t len);

#endif
