/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory registration; see mr.h. Closing keeps rule D3: memory that a peer may still
 * touch is not given back. */
#include "config.h"

#include "prov/fi/mr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/fi/cntr.h"
#include "prov/fi/domain.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/limits.h"
#include "prov/fi/newer.h"
#include "prov/fi/nosys.h"
#include "prov/fi/raw_key.h"
#include "prov/fi/wait.h"
#include "prov/mem/device.h"
#include "prov/mem/keytab.h"
#include "prov/mem/params.h"
#include "util/lock_note.h"

#define MR_ACCESS_REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)
#define MR_ACCESS	 (MR_ACCESS_REMOTE | FI_SEND | FI_RECV | FI_READ | FI_WRITE)

/* Of registrations: the memory is the host's. */
#define NO_GPU (-1)

/* How long closing waits for peers that are in the middle of an access. */
#define QUIESCE_NS	 10000000000ull
#define QUIESCE_PAUSE_NS 100000

struct wfi_mr {
	struct fid_mr fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	struct mem_region region;  /* its shares are held in the arena */
	struct mem_dmabuf dmabuf;  /* fd: ours, -1: none */
	struct mem_device *device; /* memory of a GPU; NULL: the host's */
	uint64_t key;		   /* fid.key is what the application may know of it */
	bool bound;		   /* to an endpoint */
	bool enabled;		   /* peers may use it */
	bool in_table;		   /* the key names it */
	bool remote;		   /* was in the table: peers may be using it */
	bool events; /* FI_RMA_EVENT: it may have counters even where that must be told */
	struct list node;	   /* wfi_domain.counted, while it has counters */
	struct list keyed;	   /* wfi_domain.keyed, while wires know the key */
	struct wfi_cntr *cntrs[2]; /* by MR_READS, MR_WRITES; NULL: none */
};

/* Which accesses a counter of a region counts. */
enum { MR_WRITES, MR_READS, MR_CNTRS };

_Static_assert(WFI_MR_IOV_LIMIT <= MEM_REGION_IOV,
	       "the key table takes what we announce");

/* 0 when no peer touches the memory any more. The lock is held for a look at each
 * endpoint only, so that others go on meanwhile. */
static int mr_quiesce(struct wfi_mr *mr)
{
	struct wfi_domain *d = mr->domain;
	uint64_t deadline = wfi_now_ns() + QUIESCE_NS;
	struct timespec pause = {.tv_nsec = QUIESCE_PAUSE_NS};

	for (;;) {
		uint64_t now = wfi_now_ns();
		int rc = 0;

		wfi_domain_lock(d);
		list_foreach (pos, &d->eps) {
			struct wfi_quiesce *q =
				container_of(pos, struct wfi_quiesce, node);

			rc = q->quiesce(q, mr->key, now);
			if (rc)
				break;
		}
		if (!rc && mem_keytab_in_use(d->keys, mr->key))
			rc = -FI_EBUSY; /* by an endpoint that was closed before */
		wfi_domain_unlock(d);
		if (!rc || now >= deadline)
			return rc ? -FI_EBUSY : 0;
		nanosleep(&pause, NULL);
	}
}

/* Nobody else uses the memory any more: it may be freed. */
static void mr_drop(struct wfi_mr *mr)
{
	for (size_t i = 0; i < WFI_MR_IOV_LIMIT; i++) {
		if (mr->region.share[i])
			mem_arena_drop(mr->domain->arena, mr->region.share[i]);
	}
	if (mr->dmabuf.fd >= 0)
		close(mr->dmabuf.fd);
	if (mr->device)
		mem_device_drop(mr->device);
}

/* ---- what wires hear of keys
 * -------------------------------------------------------------------------- */

LOCK_HELD(lock_domain)
static void rows_forget(struct wfi_domain *d, const struct list *until, uint64_t key)
{
	for (struct list *n = d->eps.next; n != until; n = n->next) {
		struct wfi_quiesce *q = container_of(n, struct wfi_quiesce, node);

		if (q->key_drop)
			q->key_drop(q, key);
	}
}

/* All or none. Before a peer can use the key: nothing has to be waited for. */
LOCK_HELD(lock_domain)
static int rows_tell(struct wfi_mr *mr)
{
	struct wfi_domain *d = mr->domain;
	int rc = 0;

	list_foreach (n, &d->eps) {
		struct wfi_quiesce *q = container_of(n, struct wfi_quiesce, node);

		rc = q->key_add ? q->key_add(q, mr->key, &mr->region) : 0;
		if (rc) {
			rows_forget(d, n, mr->key);
			break;
		}
	}
	if (!rc)
		list_push_back(&d->keyed, &mr->keyed);
	if (rc)
		FI_WARN(&weft_provider, FI_LOG_MR,
			"registration: the network's devices can't have the memory of "
			"key 0x%llx (%u pieces, the first of %zu bytes at %p): %s\n",
			(unsigned long long)mr->key, mr->region.iov_count,
			mr->region.iov[0].iov_len, mr->region.iov[0].iov_base,
			fi_strerror(-rc));
	return rc;
}

LOCK_HELD(lock_domain)
static void rows_untell(struct wfi_mr *mr)
{
	if (!list_empty(&mr->keyed)) {
		list_remove(&mr->keyed);
		rows_forget(mr->domain, &mr->domain->eps, mr->key);
	}
}

static int keys_tell(struct wfi_mr *mr)
{
	int rc;

	wfi_domain_lock(mr->domain);
	rc = rows_tell(mr);
	wfi_domain_unlock(mr->domain);
	return rc;
}

/* The key has left the table. */
static void keys_untell(struct wfi_mr *mr)
{
	wfi_domain_lock(mr->domain);
	rows_untell(mr);
	wfi_domain_unlock(mr->domain);
}

/* What wires remember of it is no longer so. */
LOCK_HELD(lock_domain) static int rows_renew(struct wfi_mr *mr)
{
	if (list_empty(&mr->keyed))
		return 0;
	rows_untell(mr);
	return rows_tell(mr);
}

int wfi_mr_introduce(struct wfi_domain *d, struct wfi_quiesce *q)
{
	list_foreach (n, &d->keyed) {
		struct wfi_mr *mr = container_of(n, struct wfi_mr, keyed);
		int rc = q->key_add ? q->key_add(q, mr->key, &mr->region) : 0;

		if (!rc)
			continue;
		for (struct list *p = d->keyed.next; p != n && q->key_drop; p = p->next)
			q->key_drop(q, container_of(p, struct wfi_mr, keyed)->key);
		FI_WARN(&weft_provider, FI_LOG_EP_CTRL,
			"endpoint: the network's devices can't have the memory of key "
			"0x%llx, which was registered before: %s\n",
			(unsigned long long)mr->key, fi_strerror(-rc));
		return rc;
	}
	return 0;
}

/* ---- counters
 * -------------------------------------------------------------------------- */

LOCK_HELD(lock_domain)
static void row_detach(struct wfi_cntr *cntr, struct list *until, struct wfi_domain *d)
{
	for (struct list *n = d->eps.next; n != until; n = n->next)
		wfi_cntr_detach(cntr,
				container_of(n, struct wfi_quiesce, node)->pollable);
}

/* All or none. */
LOCK_HELD(lock_domain)
static int cntr_attach_all(struct wfi_domain *d, struct wfi_cntr *cntr)
{
	list_foreach (n, &d->eps) {
		int rc = wfi_cntr_attach(
			cntr, container_of(n, struct wfi_quiesce, node)->pollable);

		if (rc) {
			row_detach(cntr, n, d);
			return rc;
		}
	}
	return 0;
}

LOCK_HELD(lock_domain)
static int bind_cntr(struct wfi_mr *mr, struct wfi_cntr *cntr, uint64_t flags)
{
	static const uint64_t flag[MR_CNTRS] = {FI_REMOTE_WRITE, FI_REMOTE_READ};
	struct wfi_domain *d = mr->domain;

	if (!flags || flags & ~(FI_REMOTE_WRITE | FI_REMOTE_READ))
		return -FI_EBADFLAGS;
	if (wfi_cntr_domain(cntr) != d)
		return -FI_EINVAL;
	for (int i = 0; i < MR_CNTRS; i++) {
		if ((flags & flag[i]) && mr->cntrs[i])
			return -FI_EINVAL;
	}
	for (int i = 0; i < MR_CNTRS; i++) {
		int rc;

		if (!(flags & flag[i]))
			continue;
		rc = cntr_attach_all(d, cntr);
		if (rc)
			return rc;
		wfi_cntr_hold(cntr, true);
		mr->cntrs[i] = cntr;
	}
	if (list_empty(&mr->node))
		list_push_back(&d->counted, &mr->node);
	mem_keytab_want(d->keys, MEM_EVENTS_MR);
	/* Peers find with the key that somebody counts. */
	return rows_renew(mr);
}

static void unbind_cntrs(struct wfi_mr *mr)
{
	wfi_domain_lock(mr->domain);
	list_remove(&mr->node);
	for (int i = 0; i < MR_CNTRS; i++) {
		if (!mr->cntrs[i])
			continue;
		row_detach(mr->cntrs[i], &mr->domain->eps, mr->domain);
		wfi_cntr_hold(mr->cntrs[i], false);
	}
	wfi_domain_unlock(mr->domain);
}

void wfi_mr_count(struct wfi_domain *d, uint64_t key, uint64_t count, bool read)
{
	list_foreach (n, &d->counted) {
		struct wfi_mr *mr = container_of(n, struct wfi_mr, node);

		if (mr->key == key) {
			wfi_cntr_add(mr->cntrs[read ? MR_READS : MR_WRITES], count);
			return;
		}
	}
}

void wfi_mr_detach(struct wfi_domain *d, struct wfi_pollable *p)
{
	list_foreach (n, &d->counted) {
		struct wfi_mr *mr = container_of(n, struct wfi_mr, node);

		for (int i = 0; i < MR_CNTRS; i++) {
			if (mr->cntrs[i])
				wfi_cntr_detach(mr->cntrs[i], p);
		}
	}
}

int wfi_mr_attach(struct wfi_domain *d, struct wfi_pollable *p)
{
	list_foreach (n, &d->counted) {
		struct wfi_mr *mr = container_of(n, struct wfi_mr, node);

		for (int i = 0; i < MR_CNTRS; i++) {
			int rc = mr->cntrs[i] ? wfi_cntr_attach(mr->cntrs[i], p) : 0;

			if (rc) {
				wfi_mr_detach(d, p);
				return rc;
			}
		}
	}
	return 0;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static int mr_close(struct fid *fid)
{
	struct wfi_mr *mr = (struct wfi_mr *)fid;
	int rc;

	if (wfi_domain_is_inherited(mr->domain))
		return 0;
	if (mr->in_table) {
		rc = mem_keytab_remove(mr->domain->keys, mr->key);
		if (rc)
			return rc;
		mr->in_table = false;
	}
	keys_untell(mr);
	if (mr->remote && mr_quiesce(mr)) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"close: a peer may still be using key 0x%llx after 10 s; the "
			"memory "
			"must stay, and fi_close may be called again\n",
			(unsigned long long)mr->key);
		return -FI_EBUSY;
	}
	unbind_cntrs(mr);
	mr_drop(mr);
	wfi_domain_put(mr->domain);
	free(mr);
	return 0;
}

/* ---- regions that must be enabled (FI_MR_ENDPOINT, FI_MR_RMA_EVENT)
 * --------------------------------------------------------------------------- */

/* It is made without access for peers, and gets it by fi_mr_enable. */
static bool starts_disabled(const struct wfi_mr *mr)
{
	int mode = mr->domain->mr_mode;

	return (mode & FI_MR_ENDPOINT) || ((mode & FI_MR_RMA_EVENT) && mr->events);
}

static int refuse_bind(const char *what, int err)
{
	FI_WARN(&weft_provider, FI_LOG_MR, "fi_mr_bind: %s\n", what);
	return err;
}

/* Whether something may still be bound. */
static int bind_check(const struct wfi_mr *mr, bool counter)
{
	if (starts_disabled(mr) && mr->enabled)
		return refuse_bind("the region is enabled: binding comes before "
				   "fi_mr_enable",
				   -FI_EOPBADSTATE);
	if (counter && (mr->domain->mr_mode & FI_MR_RMA_EVENT) && !mr->events)
		return refuse_bind("FI_MR_RMA_EVENT: a region that gets a counter is "
				   "registered with FI_RMA_EVENT",
				   -FI_EINVAL);
	return 0;
}

static int mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_mr *mr = (struct wfi_mr *)fid;
	int rc = bind_check(mr, bfid->fclass == FI_CLASS_CNTR);

	if (rc)
		return rc;
	switch (bfid->fclass) {
	case FI_CLASS_EP:
	case FI_CLASS_SEP:
	case FI_CLASS_TX_CTX:
	case FI_CLASS_RX_CTX:
		if (wfi_ep_of(bfid)->domain != mr->domain)
			return refuse_bind("the endpoint is of another domain",
					   -FI_EINVAL);
		mr->bound = true;
		return 0;
	case FI_CLASS_CNTR:
		wfi_domain_lock(mr->domain);
		rc = bind_cntr(mr, wfi_cntr_of(bfid), flags);
		wfi_domain_unlock(mr->domain);
		return rc;
	default:
		return -FI_EINVAL;
	}
}

/* What the application may know of the key. */
static void key_show(struct wfi_mr *mr)
{
	bool hidden = !mr->enabled || (mr->domain->mr_mode & FI_MR_RAW);

	mr->fid.key = hidden ? FI_KEY_NOTAVAIL : mr->key;
}

/* Wires know the memory before peers may use it. */
static int mr_grant(struct wfi_mr *mr)
{
	int rc = keys_tell(mr);

	if (rc)
		return rc;
	rc = mem_keytab_grant(mr->domain->keys, mr->key, mr->region.access);
	if (rc)
		keys_untell(mr);
	return rc;
}

static int mr_enable(struct wfi_mr *mr)
{
	int rc = 0;

	if (mr->enabled)
		return 0;
	if ((mr->domain->mr_mode & FI_MR_ENDPOINT) && !mr->bound) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"fi_mr_enable: FI_MR_ENDPOINT: the region must be bound to an "
			"endpoint before\n");
		return -FI_EOPBADSTATE;
	}
	if (mr->in_table)
		rc = mr_grant(mr);
	if (rc)
		return rc;
	mr->enabled = true;
	key_show(mr);
	return 0;
}

/* ---- control
 * ------------------------------------------------------------------------------ */

static bool is_inside(const struct wfi_mr *mr, const struct iovec *iov)
{
	for (uint32_t i = 0; i < mr->region.iov_count; i++) {
		const struct iovec *piece = &mr->region.iov[i];
		uintptr_t offset = (uintptr_t)iov->iov_base - (uintptr_t)piece->iov_base;

		if (offset <= piece->iov_len && iov->iov_len <= piece->iov_len - offset)
			return true;
	}
	return false;
}

/* Peers on this host go through the page tables of this process, or share the memory
 * itself: pages that came anew are found by them without a word from here. Devices that
 * were told of the memory are told again. */
static int mr_refresh(struct wfi_mr *mr, const struct fi_mr_modify *modify)
{
	int rc;

	if (!modify)
		return -FI_EINVAL;
	if (modify->flags)
		return -FI_EBADFLAGS;
	if (modify->attr.iov_count && !modify->attr.mr_iov)
		return -FI_EINVAL;
	for (size_t i = 0; i < modify->attr.iov_count; i++) {
		if (!is_inside(mr, &modify->attr.mr_iov[i])) {
			FI_INFO(&weft_provider, FI_LOG_MR,
				"fi_mr_refresh: piece %zu is not inside the region\n", i);
			return -FI_EINVAL;
		}
	}
	wfi_domain_lock(mr->domain);
	rc = rows_renew(mr);
	wfi_domain_unlock(mr->domain);
	return rc;
}

static int raw_get(const struct wfi_mr *mr, const struct fi_mr_raw_attr *attr)
{
	bool virt = mr->domain->mr_virt_addr;

	if (!mr->enabled)
		return -FI_EOPBADSTATE;
	if (mr->key == FI_KEY_NOTAVAIL) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"fi_mr_raw_attr: a region that no peer may use has no key\n");
		return -FI_ENOKEY;
	}
	return wfi_raw_key_get(attr, mr->key,
			       virt ? (uintptr_t)mr->region.iov[0].iov_base : 0);
}

static int mr_control(struct fid *fid, int command, void *arg)
{
	struct wfi_mr *mr = (struct wfi_mr *)fid;

	switch (command) {
	case FI_ENABLE:
		return mr_enable(mr);
	case FI_REFRESH:
		return mr_refresh(mr, arg);
	case FI_GET_RAW_MR:
		return raw_get(mr, arg);
	default:
		return -FI_ENOSYS;
	}
}

static struct fi_ops mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = mr_close,
	.bind = mr_bind,
	.control = mr_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

/* ---- opening
 * --------------------------------------------------------------------------- */

static int mr_check(const struct fi_mr_attr *attr, uint64_t flags)
{
	if (flags & ~(uint64_t)FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	if (attr->offset || attr->access & ~MR_ACCESS)
		return -FI_EINVAL;
	if (!attr->iov_count || attr->iov_count > WFI_MR_IOV_LIMIT || !attr->mr_iov) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"%zu pieces of memory: 1 to %d are taken\n", attr->iov_count,
			WFI_MR_IOV_LIMIT);
		return -FI_EINVAL;
	}
	for (size_t i = 0; i < attr->iov_count; i++) {
		uintptr_t base = (uintptr_t)attr->mr_iov[i].iov_base;

		/* To the very end of the address space is fine, around it is not. */
		if (attr->mr_iov[i].iov_len && base + attr->mr_iov[i].iov_len - 1 < base)
			return -FI_EINVAL;
	}
	return 0;
}

/* The key is taken at once, whatever it gives access to. */
static int mr_insert(struct wfi_mr *mr, const struct fi_mr_attr *attr)
{
	struct wfi_domain *d = mr->domain;
	struct mem_region *own = &mr->region, region;
	int rc;

	for (size_t i = 0; i < attr->iov_count; i++)
		own->share[i] = mem_arena_hold(d->arena, attr->mr_iov[i].iov_base,
					       attr->mr_iov[i].iov_len);
	region = *own;
	region.access = 0; /* until it is granted */
	if (d->mr_prov_key) {
		rc = mem_keytab_insert(d->keys, &region, &mr->key);
	} else {
		/* What fi_mr_key says where there is none. */
		rc = attr->requested_key == FI_KEY_NOTAVAIL
			     ? -FI_EKEYREJECTED
			     : mem_keytab_insert_at(d->keys, &region, mr->key);
	}
	if (rc) {
		FI_INFO(&weft_provider, FI_LOG_MR, "key 0x%llx: %s\n",
			(unsigned long long)attr->requested_key, fi_strerror(-rc));
		return rc;
	}
	if (mr->enabled)
		rc = mr_grant(mr);
	if (rc) {
		mem_keytab_remove(d->keys, mr->key);
		return rc;
	}
	mr->in_table = mr->remote = true;
	return 0;
}

/* Endpoints that come later register it as well: the descriptor is kept. */
static int dmabuf_hold(struct wfi_mr *mr, const struct mem_dmabuf *dmabuf)
{
	mr->dmabuf.fd = -1;
	if (!dmabuf)
		return 0;
	mr->dmabuf = *dmabuf;
	mr->dmabuf.fd = fcntl(dmabuf->fd, F_DUPFD_CLOEXEC, 0);
	if (mr->dmabuf.fd < 0)
		return errno == EBADF ? -FI_EINVAL : -FI_EMFILE;
	mr->region.dmabuf = &mr->dmabuf;
	return 0;
}

/* Memory of GPU number `gpu`; none where that is negative. */
static int device_hold(struct wfi_mr *mr, const struct fi_mr_attr *attr, int gpu)
{
	struct mem_dmabuf dmabuf;
	int rc;

	if (gpu < 0)
		return 0;
	if (attr->iov_count != 1) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"%zu pieces of memory of a GPU: one is taken, of any number of "
			"allocations\n",
			attr->iov_count);
		return -FI_EINVAL;
	}
	rc = mem_device_add(attr->mr_iov[0].iov_base, attr->mr_iov[0].iov_len, gpu,
			    &mr->device);
	if (rc)
		return rc;
	mr->region.device = true;
	if (mr->region.dmabuf || !mem_device_dmabuf(mr->device, &dmabuf))
		return 0;
	return dmabuf_hold(mr, &dmabuf);
}

static int mr_open(struct wfi_domain *d, const struct fi_mr_attr *attr,
		   const struct mem_dmabuf *dmabuf, int gpu, uint64_t flags,
		   struct fid_mr **fid)
{
	struct wfi_mr *mr;
	int rc = mr_check(attr, flags);

	if (rc)
		return rc;
	if (wfi_domain_is_inherited(d)) {
		FI_WARN(&weft_provider, FI_LOG_MR,
			"registration: its domain was opened by the process that forked "
			"this one: open a domain here\n");
		return -FI_EOPBADSTATE;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = d;
	rc = dmabuf_hold(mr, dmabuf);
	if (!rc)
		rc = device_hold(mr, attr, gpu);
	if (rc) {
		mr_drop(mr);
		free(mr);
		return rc;
	}
	list_init(&mr->node);
	list_init(&mr->keyed);
	mr->region.iov_count = (uint32_t)attr->iov_count;
	mr->region.access = attr->access;
	mr->region.virt_addr = d->mr_virt_addr;
	memcpy(mr->region.iov, attr->mr_iov, attr->iov_count * sizeof(*attr->mr_iov));
	mr->events = flags & FI_RMA_EVENT;
	mr->enabled = !starts_disabled(mr);
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &mr_fi_ops;
	mr->fid.mem_desc = mr;
	/* A region that no peer may use needs no key, and takes no row from those that
	 * do. */
	mr->key = d->mr_prov_key ? FI_KEY_NOTAVAIL : attr->requested_key;
	if (attr->access & MR_ACCESS_REMOTE) {
		rc = mr_insert(mr, attr);
		if (rc) {
			mr_drop(mr);
			free(mr);
			return rc;
		}
	}
	key_show(mr);
	wfi_domain_get(d);
	*fid = &mr->fid;
	return 0;
}

static int domain_of_class(struct fid *fid, struct wfi_domain **d)
{
	if (fid->fclass != FI_CLASS_DOMAIN)
		return -FI_EINVAL;
	*d = (struct wfi_domain *)fid;
	return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		   uint64_t access, uint64_t offset, uint64_t requested_key,
		   uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = requested_key,
		.context = context,
	};
	struct wfi_domain *d;
	int rc = domain_of_class(fid, &d);

	return rc ? rc : mr_open(d, &attr, NULL, NO_GPU, flags, mr);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access,
		  uint64_t offset, uint64_t requested_key, uint64_t flags,
		  struct fid_mr **mr, void *context)
{
	const struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

	return mr_regv(fid, &iov, 1, access, offset, requested_key, flags, mr, context);
}

/* Memory that a descriptor stands for, and that has an address: the host's is mapped
 * there, and peers on this host, and packets, go by the mapping. */
static int dmabuf_open(struct wfi_domain *d, const struct fi_mr_attr *attr, int gpu,
		       uint64_t flags, struct fid_mr **mr)
{
	const struct newer_mr_dmabuf *b = newer_dmabuf(attr);
	struct fi_mr_attr mapped = *attr;
	struct mem_dmabuf dmabuf;
	struct iovec iov;

	if (attr->iov_count != 1 || !b || !b->base_addr || b->fd < 0 ||
	    b->offset > UINTPTR_MAX - (uintptr_t)b->base_addr) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"FI_MR_DMABUF: one piece is taken, of host memory that is "
			"mapped: base_addr says where\n");
		return -FI_EINVAL;
	}
	iov = (struct iovec){(char *)b->base_addr + b->offset, b->len};
	dmabuf = (struct mem_dmabuf){.fd = b->fd, .offset = b->offset};
	mapped.mr_iov = &iov;
	return mr_open(d, &mapped, &dmabuf, gpu, flags & ~FI_MR_DMABUF, mr);
}

/* Whose memory it is: the GPU's number, NO_GPU, or what is wrong in *rc. */
static int mr_owner(const struct wfi_domain *d, const struct fi_mr_attr *attr, int *rc)
{
	*rc = 0;
	/* Before 1.10 the structure ended before it said what kind of memory it is. */
	if (d->api_version < FI_VERSION(1, 10) || attr->iface == FI_HMEM_SYSTEM)
		return NO_GPU;
	if (attr->iface == FI_HMEM_CUDA && d->devices) {
		*rc = attr->device.cuda < 0 ? -FI_EINVAL : 0;
		return attr->device.cuda;
	}
	FI_INFO(&weft_provider, FI_LOG_MR,
		"memory of interface %d: host memory can be registered, and with FI_HMEM "
		"among the capabilities of the domain that of CUDA\n",
		attr->iface);
	*rc = -FI_ENOSYS;
	return NO_GPU;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
		      struct fid_mr **mr)
{
	struct wfi_domain *d;
	int rc = domain_of_class(fid, &d), gpu;

	if (rc)
		return rc;
	gpu = mr_owner(d, attr, &rc);
	if (rc)
		return rc;
	if (gpu >= 0)
		flags &= ~FI_HMEM_DEVICE_ONLY; /* as all of it is */
	if (d->api_version >= FI_VERSION(1, 5) && attr->auth_key_size) {
		FI_INFO(&weft_provider, FI_LOG_MR,
			"an authorization key of %zu bytes: none are supported\n",
			attr->auth_key_size);
		return -FI_EINVAL;
	}
	if (d->api_version >= FI_VERSION(1, 20) && (flags & FI_MR_DMABUF))
		return dmabuf_open(d, attr, gpu, flags, mr);
	return mr_open(d, attr, NULL, gpu, flags, mr);
}

struct fi_ops_mr wfi_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = mr_reg,
	.regv = mr_regv,
	.regattr = mr_regattr,
};
