/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes, each with a GPU (the stand-in) and an endpoint with FI_HMEM: what
 * test_hmem.c drives. Both run the same steps; they wait for each other over a socket. */
#ifndef WEFT_FI_HMEM_PAIR_H
#define WEFT_FI_HMEM_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include "gpu/tests/app.h"

struct pair {
	int rank;
	int other; /* a socket to it */
	int tell;  /* where rank 0 says what it found */
	struct app *app;
	struct gpu *gpu;
	struct gpu_queue *queue;
	uint8_t *bounce; /* pinned, PAIR_MAX bytes */
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	fi_addr_t peer;
};

#define PAIR_MAX ((size_t)8 << 20)

struct buffer {
	bool device;
	uint8_t *at;
	size_t len;
	struct fid_mr *mr;
	void *desc; /* of a device's */
};

/* Runs fn in two children, over whatever FI_WEFT_* says then. What rank 0 says goes to
 * `line`: "1 words", "0 words" where it is not good, or "# words". False: one of them did
 * not end well. (Checks are counted by the program's own file: util/tap.h.) */
bool pair_run(void (*fn)(struct pair *p), void (*line)(const char *line));

/* In a child. Ends it when something that the test isn't about goes wrong. */
void pair_must(const struct pair *p, int64_t ret, const char *what);
/* GPU and, with FI_HMEM, endpoint. */
void pair_gpu(struct pair *p);
struct fi_info *pair_hints(void);
void pair_open(struct pair *p);
void pair_close(struct pair *p);
/* Rank 0 says how it went, and whether it was good. */
void pair_say(const struct pair *p, bool good, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Bytes of both, each to the other; the endpoint goes on meanwhile. */
void pair_swap(const struct pair *p, const void *mine, void *theirs, size_t len);
/* Whether it is good on both sides; also: nobody goes on alone. */
bool pair_both(const struct pair *p, bool good);

/* len bytes, registered for all that there is. Memory of a device is app_alloc's, or
 * with `pieces` of several pieces of 2 MiB. */
void buffer_get(struct pair *p, struct buffer *b, bool device, size_t len, int pieces);
void buffer_put(struct pair *p, struct buffer *b);
/* Bytes that depend on seed and place; whether they are there. */
void buffer_fill(struct pair *p, struct buffer *b, size_t at, size_t len, uint32_t seed);
bool buffer_has(struct pair *p, struct buffer *b, size_t at, size_t len, uint32_t seed);
void buffer_read(struct pair *p, struct buffer *b, void *to, size_t len);
void buffer_write(struct pair *p, struct buffer *b, const void *from, size_t len);

/* The next completion: 0, or the fi_errno of an error. */
int pair_wait(const struct pair *p);

#endif
