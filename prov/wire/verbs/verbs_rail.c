/* SPDX-License-Identifier: BSD-2-Clause */
/* What a port of a device has to say. */
#include "config.h"

#include "prov/wire/verbs/verbs_rail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_gid.h"
#include "prov/wire/verbs/verbs_ooo.h"

#define INLINE_MOST 1024 /* bytes that are asked for, then half as many, and so on */

int verbs_error_set(struct verbs_error *error, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error->text, sizeof(error->text), fmt, ap);
	va_end(ap);
	return rc;
}

static int gid_choose(const struct verbs_lib *lib, int wanted, int count,
		      const struct verbs_rail *rail, struct verbs_reach *reach,
		      struct verbs_error *error)
{
	if (verbs_gid_choose(lib, rail, count, wanted, 0, reach) ||
	    (reach->kind == VERBS_RAIL_IB && !reach->global))
		return 0;
	if (wanted >= 0)
		return verbs_error_set(error, -FI_ENODATA,
				       "%s port %u has no GID %d (FI_WEFT_GID_INDEX); "
				       "show_gids or ibv_devinfo -v lists those that "
				       "there are",
				       rail->name, rail->port, wanted);
	return verbs_error_set(error, -FI_ENODATA,
			       "the GID table of %s port %u is empty: give its network "
			       "interface an address",
			       rail->name, rail->port);
}

/* ---- port ---------------------------------------------------------------------------
 */

static uint64_t port_speed(const struct ibv_port_attr *p)
{
	/* Mbit/s of one lane, by the bits of active_speed. */
	static const uint32_t lane[] = {2500,  5000,  10000,  10000, 14000,
					25000, 50000, 100000, 200000};
	uint64_t width = p->active_width == 16	? 2
			 : p->active_width == 8 ? 12
			 : p->active_width == 4 ? 8
			 : p->active_width == 2 ? 4
						: 1;
	unsigned bit = 0;

	while (bit < 8 && (p->active_speed >> bit) > 1)
		bit++;
	return width * lane[bit];
}

static void reach_take(struct verbs_reach *reach, const struct ibv_port_attr *p)
{
	reach->lid = p->link_layer == IBV_LINK_LAYER_ETHERNET ? 0 : p->lid;
	reach->global = p->link_layer == IBV_LINK_LAYER_ETHERNET ||
			(p->flags & IBV_QPF_GRH_REQUIRED) != 0 || p->lid == 0;
	reach->mtu = p->active_mtu;
}

static void port_take(struct verbs_rail *rail, const struct ibv_port_attr *p)
{
	rail->speed = port_speed(p);
	rail->limits.max_message = p->max_msg_sz;
	rail->up = p->state == IBV_PORT_ACTIVE;
}

static int pkey_read(const struct verbs_lib *lib, const struct verbs_want *want,
		     struct verbs_rail *rail, struct verbs_error *error)
{
	__be16 pkey = 0;

	rail->pkey_index = want->pkey_index;
	if (lib->query_pkey(rail->context, rail->port, want->pkey_index, &pkey) != 0 ||
	    pkey == 0)
		return verbs_error_set(error, -FI_ENODATA,
				       "%s port %u has no partition key %u "
				       "(FI_WEFT_PKEY_INDEX)",
				       rail->name, rail->port, want->pkey_index);
	rail->pkey = be16toh(pkey);
	return 0;
}

struct verbs_reach verbs_rail_reach(const struct verbs_rail *rail)
{
	struct verbs_reach reach;

	pthread_mutex_lock(rail->moving);
	reach = rail->reach;
	pthread_mutex_unlock(rail->moving);
	return reach;
}

static bool reach_same(const struct verbs_reach *a, const struct verbs_reach *b)
{
	return a->lid == b->lid && a->gid_index == b->gid_index &&
	       memcmp(&a->gid, &b->gid, sizeof(a->gid)) == 0;
}

/* Who asks later writes later what there was. `looking`. */
static bool rail_moved(const struct verbs_lib *lib, struct verbs_rail *rail)
{
	struct verbs_reach was = verbs_rail_reach(rail), now = was;
	bool ib = was.kind == VERBS_RAIL_IB;
	struct ibv_port_attr p;
	struct verbs_gid gid;

	if (verbs_query_port(lib, rail->context, rail->port, &p) != 0) {
		atomic_fetch_add(&rail->moves, 1);
		return true;
	}
	reach_take(&now, &p);
	/* Where it was before, or wherever there is one of the same kind: peers know its
	 * kind for good. While there is none it can't be reached. */
	if (verbs_gid_read(lib, rail, ib, was.gid_index, &gid) &&
	    (ib || gid.kind == was.kind))
		verbs_gid_take(&now, &gid);
	else
		(void)verbs_gid_choose(lib, rail, p.gid_tbl_len, -1, ib ? 0 : was.kind,
				       &now);
	rail->up = p.state == IBV_PORT_ACTIVE;
	if (reach_same(&now, &was))
		return false;
	pthread_mutex_lock(rail->moving);
	rail->reach = now;
	pthread_mutex_unlock(rail->moving);
	/* Behind it: whoever sees the count reads what is so now. */
	atomic_fetch_add(&rail->moves, 1);
	return true;
}

bool verbs_rail_moved(const struct verbs_lib *lib, struct verbs_rail *rail)
{
	bool moved;

	pthread_mutex_lock(rail->looking);
	moved = rail_moved(lib, rail);
	pthread_mutex_unlock(rail->looking);
	return moved;
}

bool verbs_rail_turned(const struct verbs_lib *lib, struct verbs_rail *rail)
{
	struct ibv_port_attr p;
	bool turned;

	pthread_mutex_lock(rail->looking);
	turned = !rail->dead &&
		 verbs_query_port(lib, rail->context, rail->port, &p) == 0 &&
		 (p.state == IBV_PORT_ACTIVE) != rail->up;
	if (turned)
		(void)rail_moved(lib, rail);
	pthread_mutex_unlock(rail->looking);
	return turned;
}

/* ---- device -------------------------------------------------------------------------
 */

static uint32_t some(int v)
{
	return v > 0 ? (uint32_t)v : 0;
}

static void demand_read(struct ibv_context *context, bool native, struct verbs_limits *l)
{
	struct verbs_context *v = verbs_get_ctx_op(context, query_device_ex);
	struct ibv_device_attr_ex ex;
	uint32_t need = IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_WRITE;

	if (native)
		need |= IBV_ODP_SUPPORT_ATOMIC;
	memset(&ex, 0, sizeof(ex));
	if (!v || v->query_device_ex(context, NULL, &ex, sizeof(ex)))
		return;
	l->odp = (ex.odp_caps.general_caps & IBV_ODP_SUPPORT) &&
		 (ex.odp_caps.per_transport_caps.rc_odp_caps & need) == need;
	l->odp_all = l->odp && (ex.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT);
}

/* The kernel has a folder for each device, in which a link leads to its hardware: not of
 * rxe and its like. Where the folder isn't seen nothing is known of it. */
static bool is_software(const struct verbs_rail *rail)
{
	const char *folder = rail->context->device->ibdev_path;
	char path[IBV_SYSFS_PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/device", folder);
	return folder[0] && access(folder, F_OK) == 0 && access(path, F_OK) != 0 &&
	       errno == ENOENT;
}

static int limits_read(const struct verbs_lib *lib, const struct verbs_want *want,
		       struct verbs_rail *rail, struct verbs_error *error)
{
	struct verbs_limits *l = &rail->limits;
	struct ibv_device_attr a;
	int rc;

	memset(&a, 0, sizeof(a));
	rc = lib->query_device(rail->context, &a);
	if (rc)
		return verbs_error_set(error, -FI_EIO, "%s doesn't tell its limits: %s",
				       rail->name, strerror(rc));
	l->qps = some(a.max_qp);
	l->qp_wr = some(a.max_qp_wr);
	l->sge = some(a.max_sge < a.max_sge_rd || !a.max_sge_rd ? a.max_sge
								: a.max_sge_rd);
	l->cqs = some(a.max_cq);
	l->cqe = some(a.max_cqe);
	l->srqs = some(a.max_srq);
	l->srq_wr = some(a.max_srq_wr);
	l->rd_atomic = some(a.max_qp_rd_atom) > 255 ? 255 : some(a.max_qp_rd_atom);
	l->init_rd_atomic =
		some(a.max_qp_init_rd_atom) > 255 ? 255 : some(a.max_qp_init_rd_atom);
	l->mrs = some(a.max_mr);
	l->mr_size = a.max_mr_size;
	l->port_active_event = (a.device_cap_flags & IBV_DEVICE_PORT_ACTIVE_EVENT) != 0;
	l->atomic = a.atomic_cap != IBV_ATOMIC_NONE;
	demand_read(rail->context, want->native, l);
	return 0;
}

/* Nothing here relies on it (numbers say what has arrived); it is for users to see. Who
 * isn't sure says no. */
static bool in_order_ask(const struct verbs_lib *lib, struct ibv_qp *qp)
{
	return lib->query_qp_data_in_order &&
	       lib->query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 1;
}

/* How much a send can carry in itself is known of queue pairs only. */
static int inline_find(const struct verbs_lib *lib, struct verbs_rail *rail)
{
	struct ibv_cq *cq = lib->create_cq(rail->context, 4, NULL, NULL, 0);
	int err = ENOMEM;

	if (!cq)
		return errno ? errno : ENOMEM;
	for (uint32_t want = INLINE_MOST;; want /= 2) {
		struct ibv_qp_init_attr attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.cap = {.max_send_wr = 1,
				.max_recv_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.max_inline_data = want},
		};
		struct ibv_qp *qp = lib->create_qp(rail->pd, &attr);

		err = qp ? 0 : errno;
		if (qp) {
			rail->limits.inlined = attr.cap.max_inline_data;
			rail->limits.in_order = in_order_ask(lib, qp);
			lib->destroy_qp(qp);
		}
		if (qp || want == 0)
			break;
	}
	lib->destroy_cq(cq);
	return err;
}

static int first_qp(const struct verbs_lib *lib, struct verbs_rail *rail,
		    struct verbs_error *error)
{
	int err = inline_find(lib, rail);

	if (!err)
		return 0;
	if (err == ENOMEM && verbs_memlock_bad(error))
		return -FI_ENOMEM;
	return verbs_error_set(error, err == ENOMEM ? -FI_ENOMEM : -FI_EIO,
			       "%s makes no queue pair: %s", rail->name, strerror(err));
}

static void ooo_look(struct verbs_rail *rail)
{
	const char *why = "";

	rail->ooo_depth = verbs_ooo_depth(rail->context, &why);
	if (!rail->ooo_depth)
		FI_INFO(&weft_provider, FI_LOG_CORE, "%s places data in order only: %s\n",
			rail->name, why);
}

int verbs_rail_look(const struct verbs_lib *lib, const struct verbs_want *want,
		    struct verbs_rail *rail, struct verbs_error *error)
{
	struct ibv_port_attr p;
	int rc, index;

	rc = verbs_query_port(lib, rail->context, rail->port, &p);
	if (rc)
		return verbs_error_set(error, -FI_EIO,
				       "%s doesn't tell of its port %u: %s", rail->name,
				       rail->port, strerror(rc));
	/* Nobody else knows it yet. */
	port_take(rail, &p);
	reach_take(&rail->reach, &p);
	rail->reach.kind = p.link_layer == IBV_LINK_LAYER_ETHERNET ? VERBS_RAIL_ROCE4
								   : VERBS_RAIL_IB;
	rail->software = is_software(rail);
	rail->sl = want->service_level;
	rail->hop_limit = want->hop_limit;
	rc = verbs_gid_index_read(want->gid_index, &index, error);
	if (!rc)
		rc = gid_choose(lib, index, p.gid_tbl_len, rail, &rail->reach, error);
	if (!rc)
		rc = pkey_read(lib, want, rail, error);
	if (!rc)
		rc = limits_read(lib, want, rail, error);
	if (rc)
		return rc;
	if (!rail->pd)
		rail->pd = lib->alloc_pd(rail->context);
	if (!rail->pd)
		return verbs_error_set(error, -FI_ENOMEM,
				       "%s makes no protection domain: %s", rail->name,
				       strerror(errno));
	if (want->ooo != PROV_OOO_OFF)
		ooo_look(rail);
	return first_qp(lib, rail, error);
}
