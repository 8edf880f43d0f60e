/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The provider's options (FI_WEFT_*), in one table, read once; and the provider record
 * that every layer logs by. Lowest layer: anybody may include it.
 */
#ifndef WEFT_MEM_PARAMS_H
#define WEFT_MEM_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <rdma/providers/fi_log.h>
#include <rdma/providers/fi_prov.h>

/* Filled with its functions by fi_prov_ini; name and versions are always there. */
extern struct fi_provider weft_provider;

/* Off unless asked for, where the receiver can pull: two copies at once were 1.5 times as
 * fast as one on one machine and 0.6 times on another, and one copy by two processors
 * beats both (wire/shm/README.md). */
#define PROV_BULK_SIZE (UINT64_C(1) << 62)

/* From here on the second processor is worth a packet: 1.2 times as fast as one copy at
 * 64 KiB, 1.7 times at 1 MiB (wire/shm/README.md). */
#define PROV_JOINT_SIZE (UINT64_C(64) << 10)

/* Local registrations that are kept (regcache.h). */
#define PROV_MR_CACHE_COUNT 1024
#define PROV_MR_CACHE_SIZE  (UINT64_C(1) << 30)

/* As many as switches need to spread packets; each costs every endpoint a descriptor. */
#define PROV_UET_PATHS	   8
#define PROV_UET_PATHS_MAX 32

/* Devices need 3.8 s to find out that a path fails, and may take twice as long. */
#define PROV_ANSWER_TIME_MS 10000
/* Longer than that, shorter than people wait. */
#define PROV_STALL_TIME_MS 20000

/* Also of a process that is looked at in a debugger, as long as it may be stopped. */
#define PROV_UET_TIMEOUT_MS 30000

enum prov_cma { PROV_CMA_AUTO, PROV_CMA_OFF, PROV_CMA_ON };

/* Registration modes that applications must follow although no wire needs them. */
enum prov_mr_demand {
	PROV_MR_NOTHING,
	PROV_MR_RAW,
	PROV_MR_RMA_EVENT,
	PROV_MR_ENDPOINT,
	PROV_MR_ALL,
};

/* Whether queue pairs may place data out of order, where devices can. */
enum prov_ooo { PROV_OOO_AUTO, PROV_OOO_OFF, PROV_OOO_ON };

/* Whether a fork must leave what devices know of memory as it is (verbs_fork.h). */
enum prov_fork { PROV_FORK_AUTO, PROV_FORK_OFF, PROV_FORK_ON };

/* Which datagrams of the wire over UDP have a checksum (uet_sums.h). */
enum prov_checksum { PROV_CHECKSUM_AUTO, PROV_CHECKSUM_ALWAYS };

/* Who carries out atomic operations on other hosts' memory. */
enum prov_atomics { PROV_ATOMICS_LIBRARY, PROV_ATOMICS_NATIVE };

/* How a cache of registrations hears of memory that goes away. */
enum prov_monitor { PROV_MONITOR_AUTO, PROV_MONITOR_USERFAULTFD, PROV_MONITOR_DISABLED };

/* Which wire fi_getinfo has entries for. */
enum prov_wire { PROV_WIRE_AUTO, PROV_WIRE_SHM, PROV_WIRE_VERBS, PROV_WIRE_UET };

struct prov_params {
	uint64_t connect_timeout_ms;
	uint64_t answer_time_ms;
	uint64_t stall_time_ms;
	uint64_t eager_size;   /* bytes; a wire's packet may allow less */
	uint64_t bulk_size;    /* bytes from which on bulk slots are used */
	uint64_t joint_size;   /* bytes from which on both sides copy by attach */
	uint64_t cma;	       /* enum prov_cma: cross-memory attach */
	uint64_t claim_remote; /* 0 or 1: announce FI_REMOTE_COMM */
	uint64_t mr_demand;    /* enum prov_mr_demand */
	uint64_t mr_cache_max_count;
	uint64_t mr_cache_max_size; /* bytes */
	uint64_t mr_cache_monitor;  /* enum prov_monitor */
	uint64_t wire;		    /* enum prov_wire */
	uint64_t shm;		    /* 0 or 1: peers on this host by shared memory */
	/* Peers on other hosts. Texts: NULL when not set. */
	const char *rails;
	const char *lanes;
	const char *profile;
	const char *fabric_map;
	const char *fabric_host;
	const char *gid_index;
	const char *auth_key;
	uint64_t pkey_index;
	uint64_t service_level;
	uint64_t hop_limit;
	uint64_t verbs_ooo;	/* enum prov_ooo */
	uint64_t verbs_atomics; /* enum prov_atomics */
	uint64_t uet_checksum;	/* enum prov_checksum */
	const char *uet_key;
	uint64_t uet_paths;	 /* source ports */
	const char *uet_rails;	 /* interfaces or addresses of this host */
	uint64_t uet_timeout_ms; /* a peer of the wire over UDP that says nothing */
	const char *uet_shim;	 /* a bad network, for tests (wire/uet/uet_shim.h) */
	uint64_t verbs_fork;	 /* enum prov_fork */
	uint64_t numbered;	 /* 0 or 1: every write to another host has a number */
};

/* One row: what people see, and what is accepted. A word stands for its index. */
struct prov_param {
	const char *name;	  /* without FI_WEFT_, lower case */
	const char *const *words; /* NULL: a number */
	const char *absent;	  /* a text, which whoever uses it reads: what holds
				   * when it is not set */
	bool secret;		  /* a text that no log may have */
	const char *unit;	  /* of a number; NULL: none */
	uint64_t initial;
	uint64_t min;
	uint64_t max;
	size_t offset; /* of a uint64_t in struct prov_params; a text: of a pointer */
	const char *text;
};

extern const struct prov_param prov_param_table[];
extern const size_t prov_param_count;

/* Announces the options to libfabric and reads them; a value that isn't accepted is
 * warned about and the default taken. Called once, by fi_prov_ini. */
void prov_params_init(void);

/* Defaults until prov_params_init was called. */
const struct prov_params *prov_params(void);

/* What the text given for a row means. False when it means nothing; *value is untouched
 * then. */
bool prov_param_parse(const struct prov_param *row, const char *text, uint64_t *value);

#endif
