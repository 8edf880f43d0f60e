/* SPDX-License-Identifier: BSD-2-Clause */
/* Atomic operations on a target; see atomic_side.h. */
#include "config.h"

#include "fabtests/own/atomic_side.h"

const struct want want_atomic = {.caps = FI_ATOMIC | FI_RMA | FI_MSG,
				 .mr_mode = BASE_MODE};

void atomic_target(struct side *s)
{
	target_run_as(s, &want_atomic);
}

uint64_t fetch_u64(struct side *s, struct initiator *in, enum fi_op op, uint64_t arg,
		   size_t off)
{
	uint64_t *arg_at = (uint64_t *)(void *)in->mem, *result = arg_at + 1;
	struct done d;

	*arg_at = arg;
	while (node_again(s,
			  fi_fetch_atomic(s->node.ep, arg_at, 1, in->desc, result,
					  in->desc, s->node.peer, in->remote.base + off,
					  in->remote.key, FI_UINT64, op, &d),
			  "fi_fetch_atomic"))
		;
	node_expect(s, &d, FETCH_DONE, &d);
	return *result;
}

uint64_t read_u64(struct side *s, struct initiator *in, size_t off)
{
	return fetch_u64(s, in, FI_ATOMIC_READ, 0, off);
}

void write_u64(struct side *s, struct initiator *in, size_t off, uint64_t value)
{
	fetch_u64(s, in, FI_ATOMIC_WRITE, value, off);
}

ssize_t post_any(struct side *s, struct initiator *in, int mode, enum fi_datatype type,
		 enum fi_op op, size_t count, void *context)
{
	struct node *n = &s->node;
	uint8_t *arg = in->mem, *cmp = arg + (128 << 10), *result = cmp + (128 << 10);

	switch (mode) {
	case 0:
		return fi_atomic(n->ep, arg, count, in->desc, n->peer, in->remote.base,
				 in->remote.key, type, op, context);
	case 1:
		return fi_fetch_atomic(n->ep, arg, count, in->desc, result, in->desc,
				       n->peer, in->remote.base, in->remote.key, type, op,
				       context);
	default:
		return fi_compare_atomic(n->ep, arg, count, in->desc, cmp, in->desc,
					 result, in->desc, n->peer, in->remote.base,
					 in->remote.key, type, op, context);
	}
}
