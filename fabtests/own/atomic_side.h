/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations on a target of remote.h. */
#ifndef WEFT_FABTESTS_OWN_ATOMIC_SIDE_H
#define WEFT_FABTESTS_OWN_ATOMIC_SIDE_H

#include <rdma/fi_atomic.h>

#include "fabtests/own/remote.h"

#define BASE_DONE  (FI_ATOMIC | FI_WRITE)
#define FETCH_DONE (FI_ATOMIC | FI_READ)
#define ALL_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

extern const struct want want_atomic;
/* A target that is open as the initiator is. */
void atomic_target(struct side *s);

/* One element of the target; done when it returns. */
uint64_t fetch_u64(struct side *s, struct initiator *in, enum fi_op op, uint64_t arg,
		   size_t off);
uint64_t read_u64(struct side *s, struct initiator *in, size_t off);
void write_u64(struct side *s, struct initiator *in, size_t off, uint64_t value);

/* Posts whatever it is. mode: 0 without result, 1 with one, 2 with a comparison. */
ssize_t post_any(struct side *s, struct initiator *in, int mode, enum fi_datatype type,
		 enum fi_op op, size_t count, void *context);

#endif
