/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a vendor's library has for placement out of order by choice (delivery=choice):
 * three calls of mlx5's, as many as are needed. libmlx5.so.1 beside this library is empty
 * and leads whoever loads it here.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "fabtests/emuverbs/emu.h"

#ifdef HAVE_INFINIBAND_MLX5DV_H

#include <infiniband/mlx5dv.h>

#if HAVE_DECL_MLX5DV_CONTEXT_MASK_OOO_RECV_WRS
typedef struct mlx5dv_context vendor_context;
#define RECV_WRS_MASK	 ((uint64_t)MLX5DV_CONTEXT_MASK_OOO_RECV_WRS)
#define CREATE_UNORDERED ((uint32_t)MLX5DV_QP_CREATE_OOO_DP)
#define RECV_WRS(c)	 ((c)->ooo_recv_wrs_caps.max_rc)
#else
/* As headers after this one have it. */
typedef struct {
	struct mlx5dv_context older;
	uint64_t dc_reads[2];
	uint32_t c0[2];
	uint32_t recv_wrs[5]; /* of reliable connected ones first */
} vendor_context;
#define RECV_WRS_MASK	 (UINT64_C(1) << 16)
#define CREATE_UNORDERED (UINT32_C(1) << 7)
#define RECV_WRS(c)	 ((c)->recv_wrs[0])
#endif

EMU_API bool mlx5dv_is_supported(struct ibv_device *device)
{
	return emu_dev_of(device)->set->delivery == EMU_CHOICE;
}

EMU_API int mlx5dv_query_device(struct ibv_context *context, struct mlx5dv_context *attr)
{
	struct emu_dev *dev = emu_context_of(context)->dev;
	uint64_t wanted = attr->comp_mask;

	if (dev->set->delivery != EMU_CHOICE)
		return EOPNOTSUPP;
	attr->version = 0;
	attr->flags = 0;
	attr->comp_mask = wanted & RECV_WRS_MASK;
	if (wanted & RECV_WRS_MASK)
		RECV_WRS((vendor_context *)attr) = (uint32_t)dev->set->max_qp_wr;
	return 0;
}

EMU_API struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context,
					struct ibv_qp_init_attr_ex *attr,
					struct mlx5dv_qp_init_attr *vendor)
{
	bool unordered = vendor &&
			 vendor->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS &&
			 vendor->create_flags & CREATE_UNORDERED;
	struct ibv_qp_init_attr init = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
	};
	struct ibv_qp *qp;

	if (emu_context_of(context)->dev->set->delivery != EMU_CHOICE ||
	    attr->comp_mask != IBV_QP_INIT_ATTR_PD ||
	    (vendor && vendor->create_flags & ~CREATE_UNORDERED)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = ibv_create_qp(attr->pd, &init);
	if (!qp)
		return NULL;
	emu_qp_of(qp)->mixed = unordered;
	attr->cap = init.cap;
	return qp;
}

#endif
