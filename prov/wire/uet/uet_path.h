/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which path (entropy, a UDP source port of ours) the next packet takes: all in turn, in
 * an order that is drawn anew for each round, without those that are under a penalty or
 * retired. A path that loses packets and delivers none is retired, and tried again with
 * one packet after a while that doubles. Pure; the struct is its user's.
 */
#ifndef WEFT_UET_PATH_H
#define WEFT_UET_PATH_H

#include <stdbool.h>
#include <stdint.h>

#define UET_PATHS_MAX 32u

struct uet_path_config {
	uint32_t paths;	    /* 1 to UET_PATHS_MAX */
	uint32_t first;	    /* a bit for each that is used from the start; 0: all */
	uint32_t burst;	    /* packets in a row on one path, so that they can leave in one
			     * call; at least 1 */
	uint32_t burst_max; /* where so many are still less than half of a path's share of
			     * the window; 0: burst */
	uint32_t strikes;   /* losses in a row, with nothing delivered, that retire it */
	uint64_t retry_min; /* ns until a retired one is tried again */
	uint64_t retry_max;
};

enum uet_path_news {
	UET_PATH_DELIVERED,
	UET_PATH_MARKED, /* delivered, with an ECN mark */
	UET_PATH_LOST,	 /* a packet was lost, and later ones on it came through */
	UET_PATH_SILENT, /* a packet was lost, and nothing came through since */
	UET_PATH_TIMEOUT /* the same, found by a timeout: says nothing of which path */
};

struct uet_path {
	uint64_t sent;	      /* packets; the last one's number is that modulo 2^32 */
	uint64_t bytes;	      /* payload of those, as its user counts them */
	uint64_t lost;	      /* of those: news said so */
	uint64_t retirements; /* how often it was */
	uint32_t delivered;   /* the highest number that came through */
	uint32_t penalty;     /* turns that it is passed over */
	uint32_t strikes;
	bool any;   /* something came through, ever */
	bool marks; /* it has marked a packet, ever */
	bool retired;
	bool trying;	   /* retired, and a packet is on its way to see */
	uint64_t heard_at; /* when something came through */
	uint64_t retry;
	uint64_t retry_at;
};

struct uet_paths {
	struct uet_path_config config;
	struct uet_path path[UET_PATHS_MAX];
	uint64_t random;
	uint32_t turn;
	uint32_t mask;
	uint32_t now;	  /* the one in use */
	uint32_t left;	  /* of its burst */
	uint32_t burst;	  /* as long as the window is as it is */
	bool whole;	  /* it is of whole pieces */
	uint32_t share;	  /* bursts of each path that are under way */
	uint32_t used;	  /* a bit for each that may be */
	uint32_t ways;	  /* how many those are */
	uint32_t retired; /* of them */
	uint64_t retirements;
	uint64_t returns;
};

/* False: configuration. `seed`: any number, drawn. */
bool uet_paths_init(struct uet_paths *p, const struct uet_path_config *config,
		    uint64_t seed);
/* That one is used, too, once a packet has come through it; or no more until one has. */
void uet_paths_try(struct uet_paths *p, uint32_t path, uint64_t now);
/* The path for a packet that leaves now, and the packet's number on it. */
uint32_t uet_paths_pick(struct uet_paths *p, uint64_t now, uint32_t *number);
/* The path for a packet that isn't counted: any, retired ones now and then. */
uint32_t uet_paths_control(struct uet_paths *p);
/* So many packets may be under way: what a burst is. A longer one than `piece` packets,
 * which leave as one, is of whole pieces; 0: any. */
void uet_paths_window(struct uet_paths *p, uint64_t packets, uint64_t piece);
/* A piece has ended before its time. Turns of whole pieces end with it: what would be
 * left of this one is less than a piece. */
void uet_paths_piece(struct uet_paths *p);
/* The next pick takes another path. */
void uet_paths_turn(struct uet_paths *p);
/* News of packet `number` on a path. */
void uet_paths_news(struct uet_paths *p, uint32_t path, uint32_t number,
		    enum uet_path_news news, uint64_t now);

#endif
