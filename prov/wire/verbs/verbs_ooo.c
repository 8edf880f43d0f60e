/* SPDX-License-Identifier: BSD-2-Clause */
/* What libmlx5 has for data placement out of order. */
#include "config.h"

#include "prov/wire/verbs/verbs_ooo.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#ifdef HAVE_INFINIBAND_MLX5DV_H

#include <infiniband/mlx5dv.h>

#define LIBRARY_NAME "libmlx5.so.1"

#if HAVE_DECL_MLX5DV_CONTEXT_MASK_OOO_RECV_WRS
typedef struct mlx5dv_context ooo_context;
#define OOO_MASK      ((uint64_t)MLX5DV_CONTEXT_MASK_OOO_RECV_WRS)
#define OOO_CREATE    ((uint32_t)MLX5DV_QP_CREATE_OOO_DP)
#define OOO_MAX_RC(c) ((c).ooo_recv_wrs_caps.max_rc)
#else
/* What newer libraries put behind the structure of this header: reads of DC queue pairs,
 * a register, and the capability, in this order. An older library leaves them alone, and
 * the mask's bit unset. */
typedef struct {
	struct mlx5dv_context known;
	uint64_t dc_rd_atomic[2];
	uint32_t reg_c0[2];
	uint32_t ooo_max[5]; /* RC first */
	uint32_t later[16];
} ooo_context;
#define OOO_MASK      (UINT64_C(1) << 16)
#define OOO_CREATE    (UINT32_C(1) << 7)
#define OOO_MAX_RC(c) ((c).ooo_max[0])
#endif

static struct {
	bool (*supported)(struct ibv_device *device);
	int (*query)(struct ibv_context *context, struct mlx5dv_context *attr);
	struct ibv_qp *(*create)(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr,
				 struct mlx5dv_qp_init_attr *vendor);
	bool there;
} mlx5;

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Never unloaded: libibverbs has it loaded as well where there is such a device. */
static void load(void)
{
	void *library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return;
	mlx5.supported =
		(__typeof__(mlx5.supported))dlsym(library, "mlx5dv_is_supported");
	mlx5.query = (__typeof__(mlx5.query))dlsym(library, "mlx5dv_query_device");
	mlx5.create = (__typeof__(mlx5.create))dlsym(library, "mlx5dv_create_qp");
	mlx5.there = mlx5.supported && mlx5.query && mlx5.create;
}

static uint64_t *context_mask(ooo_context *c)
{
	return &((struct mlx5dv_context *)c)->comp_mask;
}

static uint32_t depth_find(struct ibv_context *context, const char **why)
{
	ooo_context c;

	pthread_once(&once, load);
	if (!mlx5.there) {
		*why = LIBRARY_NAME " can't be loaded, or has none of the calls";
		return 0;
	}
	if (!mlx5.supported(context->device)) {
		*why = "the device is none of mlx5's";
		return 0;
	}
	memset(&c, 0, sizeof(c));
	*context_mask(&c) = OOO_MASK;
	if (mlx5.query(context, (struct mlx5dv_context *)&c) != 0 ||
	    !(*context_mask(&c) & OOO_MASK)) {
		*why = "driver or firmware don't know of it";
		return 0;
	}
	if (OOO_MAX_RC(c) < VERBS_OOO_DEPTH) {
		*why = "the device has it for fewer than 128 receives of a queue pair";
		return 0;
	}
	return OOO_MAX_RC(c);
}

struct ibv_qp *verbs_ooo_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct mlx5dv_qp_init_attr vendor = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = OOO_CREATE,
	};
	struct ibv_qp *qp;

	pthread_once(&once, load);
	if (!mlx5.there) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	qp = mlx5.create(pd->context, &ex, &vendor);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

#else

static uint32_t depth_find(struct ibv_context *context, const char **why)
{
	(void)context;
	*why = "this provider was built without infiniband/mlx5dv.h";
	return 0;
}

struct ibv_qp *verbs_ooo_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	(void)pd;
	(void)attr;
	errno = EOPNOTSUPP;
	return NULL;
}

#endif

uint32_t verbs_ooo_depth(struct ibv_context *context, const char **why)
{
	const char *unused;

	return depth_find(context, why ? why : &unused);
}
