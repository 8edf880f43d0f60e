/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How bulk slots are filled and emptied. Filled past the caches: the receiver reads a
 * slot once, from another core; lines that lie dirty in the sender's cache would have to
 * be fetched from there one by one, at the cores' latency, and asked for again when the
 * slot is filled anew. Emptied by wide moves: the C library's copy of this size falls to
 * half where source and destination don't lie alike in their cache lines. Measured:
 * prov/wire/shm/README.md.
 */
#ifndef WEFT_PROTO_BULK_COPY_H
#define WEFT_PROTO_BULK_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Copies bytes [offset, offset + len) of the pieces; they are visible to whoever sees a
 * later store. The caller has checked that they are there. */
int bulk_gather(const struct iovec *iov, uint32_t count, size_t offset, void *to,
		size_t len);
/* The other way round. */
int bulk_scatter(const struct iovec *iov, uint32_t count, size_t offset, const void *from,
		 size_t len);

#endif
