/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that come and go against one server: what the driver (churn.c), the server and
 * the clients agree on.
 */
#ifndef WEFT_FABTESTS_OWN_CHURN_H
#define WEFT_FABTESTS_OWN_CHURN_H

#include "fabtests/own/soak.h"

/* What a client uses the server for. */
enum churn_use {
	USE_TAGGED, /* small messages, answered */
	USE_LARGE,  /* large messages, answered by large ones */
	USE_RMA,    /* writes and reads; says no word */
	USE_SHARED, /* the same into memory of WEFT_FI_MEM_OPS */
	USES
};

/* How it ends. */
enum churn_end {
	END_ORDER, /* does its rounds and closes everything */
	END_KILL,  /* SIGKILL in the middle */
	END_STOP,  /* stopped in the middle, killed later */
	ENDS
};

struct churn_job {
	int id;
	enum churn_use use;
	enum churn_end end;
};

/* A client's memory at the server: each has a stripe of its own. */
#define CHURN_CLIENTS 8 /* at a time */
#define CHURN_STRIPE  (64u << 10)
#define CHURN_SMALL   4096
#define CHURN_LARGE   (512u << 10)
#define CHURN_WINDOW  4
#define CHURN_ROUNDS  6

/* Where the server is. */
struct churn_place {
	uint8_t name[64];
	uint64_t name_len;
	uint64_t base[2], key[2]; /* plain memory, memory of WEFT_FI_MEM_OPS */
};

/* Tags: what it is, and which client's. */
#define CHURN_TAG(what, id) ((uint64_t)(what) << 32 | (uint32_t)(id))
enum churn_what { WHAT_HELLO = 1, WHAT_WELCOME, WHAT_DATA, WHAT_ECHO };

/* Every message begins so; the rest is mem_fill's pattern of id and seq. */
struct churn_head {
	int32_t id;
	uint32_t seq;
	uint32_t large;
	uint32_t len; /* of the whole message */
};

uint32_t churn_pattern(const struct churn_head *head);
void churn_fill(uint8_t *buf, const struct churn_head *head);
bool churn_check(struct side *s, const uint8_t *buf, size_t len, const char *what);

extern const struct want churn_want;

/* Driver to server, over the side's socket; each is answered by a struct soak_use. */
enum churn_order { ORDER_DEAD, ORDER_MEASURE, ORDER_QUIT };
struct churn_word {
	int32_t order; /* enum churn_order */
	int32_t id;    /* ORDER_DEAD: the client that is no more */
	long fds;      /* ORDER_MEASURE: wait for no more than these; 0: as they are */
};

/* Tells where it is, then serves until ORDER_QUIT. */
void churn_server(struct side *s);
/* Says one byte when it is in the middle of it. */
void churn_client(struct side *s, const struct churn_job *job,
		  const struct churn_place *place);

#endif
