/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transfers of memory that the wire can't touch, a GPU's, through pinned memory of the
 * host: one endpoint has a few pieces of it. Each segment has a piece of its own, so that
 * one is filled or emptied while others are on the wire. Where the link can move bytes
 * between two GPUs by itself (wire_ops.move_device), it does.
 *
 * Endpoint lock held. Copies are waited for (prov/mem/device.h).
 */
#ifndef WEFT_PROTO_STAGE_H
#define WEFT_PROTO_STAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "prov/proto/xfer.h"

/* Bytes of a piece, and how many there are. */
#define STAGE_PIECE  ((size_t)512 << 10)
#define STAGE_PIECES 4

struct stage;
struct stage_piece;

/* Takes no pinned memory before some is needed. busy: set where a transfer waits for a
 * piece, which nothing but another try will tell of. -FI_ENOMEM. */
int stage_open(bool *busy, struct stage **out);
/* Nothing is on the wire any more. NULL is allowed. */
void stage_close(struct stage *stage);

/* As xfer_run, of an x whose stage is set. */
int stage_run(struct xfer *x, struct wire_link *link, struct mem_regcache *regs,
	      size_t budget);
/* A segment is over; cookie is what the wire gave back, and begins with XFER_STAGED.
 * Returns the transfer. */
struct xfer *stage_done(void *cookie, int *err);
/* The transfer is over, with nothing under way. */
void stage_let_go(struct xfer *x);

/* Whether any of these is a device's. */
bool iov_is_device(const struct iovec *iov, uint32_t count);

#endif
