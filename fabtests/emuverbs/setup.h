/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the emulated devices are and what happens to them: a text file.
 *
 *	emuverbs 1
 *	# of everything that is drawn
 *	seed 7
 *	device emu0 gid=10.0.0.1 delivery=mixed max_qp=64
 *	device emu1 gid=10.0.0.2 state=down
 *	# device, when, what
 *	fault emu0 1000 lose-immediate
 *	fault emu1 1 port-up
 *	fault emu0 every=100ms kill-qp
 *
 * The README.md has the keys and the faults at length. Parsing is pure: no clock, no
 * memory of its own.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_SETUP_H
#define WEFT_FABTESTS_EMUVERBS_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_DEVICES_MAX 16u
#define EMU_FAULTS_MAX	256u
#define EMU_GIDS_MAX	7u /* that are said of one device */
#define EMU_NAME_MAX	31 /* as ibv_device has room for, and longer than any */

enum emu_delivery {
	EMU_ORDERED, /* a queue pair's segments land and complete in the order posted */
	EMU_MIXED,   /* in any order: a device that places out of order */
	EMU_CHOICE,  /* as a queue pair's maker says, by the vendor's call */
};

enum emu_link {
	EMU_ETHERNET,
	EMU_INFINIBAND,
};

/* Memory that is registered without being there (IBV_ACCESS_ON_DEMAND). */
enum emu_demand {
	EMU_DEMAND_NONE,
	EMU_DEMAND_EXPLICIT,
	EMU_DEMAND_IMPLICIT, /* and all memory at once */
};

enum emu_gids {
	EMU_GIDS_ALL,
	EMU_GIDS_NONE,
};

/* What an address of a device is good for. */
enum emu_gid_use {
	EMU_GID_GOOD,
	EMU_GID_V1,    /* by RoCE v1 only */
	EMU_GID_DEAD,  /* it is in the table, and nothing comes or goes by it */
	EMU_GID_EMPTY, /* its entries are there and empty: it was taken away */
};

struct emu_gid {
	uint8_t raw[16]; /* IPv6, or IPv4 mapped into it */
	uint8_t use;	 /* enum emu_gid_use */
};

enum emu_action {
	EMU_LOSE_SEGMENT,   /* nothing arrives; the queue pair ends: retries exceeded */
	EMU_LOSE_ACK,	    /* all arrives; the sender hears that retries are exceeded */
	EMU_LOSE_IMMEDIATE, /* bytes arrive, nobody hears of it; the queue pair ends */
	EMU_LOSE_ROUTE,	    /* nothing is sent: local queue pair operation error */
	EMU_DENY,	    /* remote access error: the operation's own fault */
	EMU_PORT_DOWN,	    /* every queue pair of the device ends; event of the port */
	EMU_PORT_UP,
	EMU_KILL_QP,  /* a queue pair ends: all flushed, and its event */
	EMU_STALL_QP, /* one sends nothing for a while */
	EMU_DEVICE_FATAL,
	EMU_ACTIONS
};

/* Numbers are 64 bits wide, so that one table reads them all. */
struct emu_device {
	char name[EMU_NAME_MAX + 1];
	struct emu_gid gid[EMU_GIDS_MAX];
	unsigned
		addresses; /* of them that were said, at least 1; the first isn't empty */
	uint64_t delivery; /* enum emu_delivery */
	uint64_t late;	   /* acknowledges writes before they are in memory */
	uint64_t down;	   /* its port is, to begin with */
	uint64_t atomics;  /* it has native ones */
	uint64_t demand;   /* enum emu_demand */
	uint64_t link;	   /* enum emu_link */
	uint64_t gids;	   /* enum emu_gids */
	uint64_t rnr;	   /* a missing receive is an error at once */
	uint64_t foreign;  /* a vendor's own transport: it has no reliable connections */
	uint64_t software; /* has no hardware behind it, as rxe hasn't */
	uint64_t dmabuf;   /* registers memory by a descriptor */
	uint64_t mute;	   /* never says that a queue pair's last shared receive is out */
	uint64_t mtu;	   /* bytes */
	uint64_t ports;
	uint64_t port;	     /* the one with a cable */
	uint64_t pkeys;	     /* partitions it is in */
	uint64_t max_locked; /* KiB that may be registered; 0: as much as there is */
	uint64_t max_qp;
	uint64_t max_qp_wr;
	uint64_t max_sge;
	uint64_t max_inline; /* bytes */
	uint64_t max_cq;
	uint64_t max_cqe;
	uint64_t max_mr;
	uint64_t max_srq;
	uint64_t max_srq_wr;
	uint64_t max_rd_atomic;
};

enum emu_when {
	EMU_AFTER, /* segments were posted on the device: the next one */
	EMU_EACH,  /* that many segments */
	EMU_AT,	   /* ns since the process opened its first device */
	EMU_EVERY, /* ns */
};

/* Events that nobody hears. */
enum emu_lost { EMU_LOST_DOWN = 1, EMU_LOST_UP = 2 };

struct emu_fault {
	unsigned device;
	enum emu_when when;
	uint64_t time; /* segments or ns */
	enum emu_action action;
	uint64_t lasts; /* ns; 0: for good */
	uint64_t lasts_segments;
	unsigned host; /* only that one, by its number; 0: all */
	unsigned lost; /* of a port: bits of enum emu_lost */
};

struct emu_setup {
	uint64_t seed;
	unsigned devices;
	bool none;	 /* it says that there is no device */
	unsigned faults; /* of each device those by count in ascending order */
	struct emu_device device[EMU_DEVICES_MAX];
	struct emu_fault fault[EMU_FAULTS_MAX];
};

/* What was found, where, what may be. */
struct emu_setup_error {
	unsigned line; /* from 1; 0: of no line */
	char text[200];
};

/* One thing that may be said of a device: a number, or one of some words (their index).
 */
struct emu_setup_key {
	const char *name;
	const char *const *words; /* NULL: a number */
	size_t offset;		  /* of a uint64_t in struct emu_device */
	uint64_t initial;
	uint64_t min;
	uint64_t max;
};

extern const struct emu_setup_key emu_setup_keys[];
extern const size_t emu_setup_key_count;

/* False: *error says why; *setup is not to be used. */
bool emu_setup_parse(const char *text, size_t len, struct emu_setup *setup,
		     struct emu_setup_error *error);

/* "lose-segment", ... "?" for anything else. */
const char *emu_action_name(enum emu_action action);

#endif
