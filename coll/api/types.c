/* SPDX-License-Identifier: BSD-2-Clause */
/* Names and sizes of types, operations and collectives: one table each. */
#include "config.h"

#include "coll/comm/op.h"
#include "weft/weft.h"

struct type_row {
	const char *name;
	size_t size; /* bytes */
};

static const struct type_row type_table[WEFT_TYPE_COUNT] = {
	[WEFT_INT8] = {"int8", 1},	   [WEFT_UINT8] = {"uint8", 1},
	[WEFT_INT16] = {"int16", 2},	   [WEFT_UINT16] = {"uint16", 2},
	[WEFT_INT32] = {"int32", 4},	   [WEFT_UINT32] = {"uint32", 4},
	[WEFT_INT64] = {"int64", 8},	   [WEFT_UINT64] = {"uint64", 8},
	[WEFT_FP16] = {"fp16", 2},	   [WEFT_BF16] = {"bf16", 2},
	[WEFT_FP8_E4M3] = {"fp8_e4m3", 1}, [WEFT_FP8_E5M2] = {"fp8_e5m2", 1},
	[WEFT_FP32] = {"fp32", 4},	   [WEFT_FP64] = {"fp64", 8},
};

static const char *const op_table[WEFT_OP_COUNT] = {
	[WEFT_SUM] = "sum", [WEFT_PROD] = "prod", [WEFT_MIN] = "min",
	[WEFT_MAX] = "max", [WEFT_AVG] = "avg",	  [WEFT_BAND] = "band",
	[WEFT_BOR] = "bor", [WEFT_BXOR] = "bxor",
};

static const char *const coll_table[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BARRIER] = "barrier",
	[WEFT_COLL_BROADCAST] = "broadcast",
	[WEFT_COLL_ALLGATHER] = "allgather",
	[WEFT_COLL_ALLREDUCE] = "allreduce",
	[WEFT_COLL_ALLGATHERV] = "allgatherv",
	[WEFT_COLL_REDUCE_SCATTER] = "reduce_scatter",
	[WEFT_COLL_REDUCE_SCATTERV] = "reduce_scatterv",
	[WEFT_COLL_ALLTOALL] = "alltoall",
	[WEFT_COLL_ALLTOALLV] = "alltoallv",
	[WEFT_COLL_ALLTOALLV_DYNAMIC] = "alltoallv_dynamic",
	[WEFT_COLL_REDUCE] = "reduce",
	[WEFT_COLL_GATHER] = "gather",
	[WEFT_COLL_GATHERV] = "gatherv",
	[WEFT_COLL_SCATTER] = "scatter",
	[WEFT_COLL_SCATTERV] = "scatterv",
};

/* The values come from callers: anything outside the enum is answered, not trusted. */

size_t weft_type_size(enum weft_type type)
{
	return (unsigned)type < WEFT_TYPE_COUNT ? type_table[type].size : 0;
}

const char *weft_type_name(enum weft_type type)
{
	return (unsigned)type < WEFT_TYPE_COUNT ? type_table[type].name : "?";
}

const char *weft_op_name(enum weft_op op)
{
	if ((unsigned)op >= WEFT_OP_USER && (unsigned)op < WEFT_OP_USER + COMM_OPS_MAX)
		return "user";
	return (unsigned)op < WEFT_OP_COUNT ? op_table[op] : "?";
}

const char *weft_coll_name(enum weft_coll coll)
{
	return (unsigned)coll < WEFT_COLL_COUNT ? coll_table[coll] : "?";
}
