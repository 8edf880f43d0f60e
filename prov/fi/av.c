/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vector; see av.h. A map and a table are the same thing here: handles are dense
 * indices. */
#include "config.h"

#include "prov/fi/av.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/fi/av_int.h"
#include "prov/fi/import.h"
#include "prov/fi/nosys.h"
#include "prov/mem/params.h"

/* Handles are indices of 32 bits. */
#define CONTEXT_BITS_MAX 31

struct wfi_av *wfi_av_of(struct fid *fid)
{
	return fid && fid->fclass == FI_CLASS_AV ? (struct wfi_av *)fid : NULL;
}

struct wfi_domain *wfi_av_domain(struct wfi_av *av)
{
	return av->domain;
}

const struct wire_addr *wfi_av_addr(struct wfi_av *av, fi_addr_t fi_addr)
{
	const struct wire_addr *addr = av_table_addr(&av->table, fi_addr);

	if (!addr && av->share) { /* another process may have put it there */
		wfi_av_sync(av);
		addr = av_table_addr(&av->table, fi_addr);
	}
	return addr;
}

fi_addr_t wfi_av_split(const struct wfi_av *av, fi_addr_t fi_addr, uint32_t *context)
{
	int bits = av->context_bits;

	*context = bits ? (uint32_t)(fi_addr >> (64 - bits)) : 0;
	return bits ? fi_addr << bits >> bits : fi_addr;
}

fi_addr_t wfi_av_find(struct wfi_av *av, const struct wire_addr *addr)
{
	uint32_t index = av_table_find(&av->table, addr);

	if (index == AV_TABLE_NONE && av->share) {
		wfi_av_sync(av);
		index = av_table_find(&av->table, addr);
	}
	return index == AV_TABLE_NONE ? FI_ADDR_NOTAVAIL : index;
}

fi_addr_t wfi_av_told(struct wfi_av *av, fi_addr_t fi_addr)
{
	return wfi_av_addr(av, fi_addr) ? av->table.rows[fi_addr].user_id
					: FI_ADDR_NOTAVAIL;
}

size_t wfi_av_limit(const struct wfi_av *av)
{
	return av->table.limit;
}

void wfi_av_attach(struct wfi_av *av, struct wfi_av_user *u)
{
	list_push_back(&av->users, &u->node);
}

void wfi_av_detach(struct wfi_av *av, struct wfi_av_user *u)
{
	(void)av;
	list_remove(&u->node);
}

/* ---- inserting
 * ------------------------------------------------------------------------- */

int wfi_av_batch_begin(struct wfi_av_batch *b, struct wfi_av *av, fi_addr_t *fi_addr,
		       uint64_t flags, void *context)
{
	/* FI_MORE is a hint. */
	if (flags & ~(FI_MORE | FI_SYNC_ERR | FI_AV_USER_ID))
		return -FI_EBADFLAGS;
	if (av->share && av_share_is_read_only(av->share)) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"insert: this vector was opened with FI_READ\n");
		return -FI_EACCES;
	}
	/* The ids come where the handles go; or they are set later, one by one. */
	if ((flags & FI_AV_USER_ID) && (!fi_addr || av->ids_later))
		return -FI_EINVAL;
	if (av->async && (flags & FI_SYNC_ERR))
		return -FI_EBADFLAGS;
	if ((flags & FI_SYNC_ERR) && !context)
		return -FI_EINVAL;
	if (av->async && !av->eq) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"opened with FI_EVENT: bind an event queue before inserting\n");
		return -FI_ENOEQ;
	}
	/* Handles of a map can't be guessed. */
	if (av->type == FI_AV_MAP && !fi_addr)
		return -FI_EINVAL;
	*b = (struct wfi_av_batch){
		.av = av, .fi_addr = fi_addr, .flags = flags, .context = context};
	list_init(&b->held);
	return 0;
}

static void batch_report(struct wfi_av_batch *b, int err)
{
	struct wfi_av *av = b->av;
	struct fi_eq_err_entry entry = {
		.fid = &av->fid.fid,
		.context = b->context,
		.data = b->at,
		.err = err,
		.prov_errno = err,
	};

	if (av->async && err)
		wfi_eq_hold_error(&b->held, &entry);
	else if (b->flags & FI_SYNC_ERR)
		((int *)b->context)[b->at] = err;
}

LOCK_HELD(lock_domain)
static int batch_insert(struct wfi_av_batch *b, const struct wire_addr *addr,
			uint32_t *index)
{
	struct wfi_av *av = b->av;
	int rc = av->share ? wfi_av_share_insert(av, addr, index)
			   : av_table_insert(&av->table, addr, index);

	if (rc)
		return -rc;
	if (b->flags & FI_AV_USER_ID)
		av->table.rows[*index].user_id = b->fi_addr[b->at];
	else if (av->ids_later)
		av->table.rows[*index].user_id = FI_ADDR_NOTAVAIL;
	list_foreach (pos, &av->users) {
		struct wfi_av_user *u = container_of(pos, struct wfi_av_user, node);

		u->inserted(u, *index);
	}
	return 0;
}

void wfi_av_batch_add(struct wfi_av_batch *b, const struct wire_addr *addr, int err)
{
	fi_addr_t handle = FI_ADDR_NOTAVAIL;
	uint32_t index;

	if (addr)
		err = batch_insert(b, addr, &index);
	if (!err) {
		handle = index;
		b->good++;
	}
	if (b->fi_addr)
		b->fi_addr[b->at] = handle;
	batch_report(b, err);
	b->at++;
}

/* The one at that place among the users that have an owner; NULL: there are fewer. */
static struct fid_peer_srx *owner_at(struct wfi_av *av, int place)
{
	struct fid_peer_srx *owner = NULL;

	wfi_domain_lock(av->domain);
	list_foreach (pos, &av->users) {
		struct wfi_av_user *u = container_of(pos, struct wfi_av_user, node);

		if (u->owner && !place--) {
			owner = u->owner;
			break;
		}
	}
	wfi_domain_unlock(av->domain);
	return owner;
}

/* Their own locks come before the domain's, which they take when they look. */
static void tell_owners(struct wfi_av *av)
{
	struct fid_peer_srx *owner;

	for (int i = 0; (owner = owner_at(av, i)); i++)
		wfi_import_look_again(owner);
}

int wfi_av_batch_end(struct wfi_av_batch *b)
{
	struct wfi_av *av = b->av;
	struct fi_eq_entry entry = {
		.fid = &av->fid.fid,
		.context = b->context,
		.data = b->good,
	};

	tell_owners(av);
	if (!av->async)
		return (int)b->good;
	wfi_eq_release(av->eq, &b->held);
	return wfi_eq_report(av->eq, FI_AV_COMPLETE, &entry, sizeof(entry));
}

/* How far the next address is: what the domain's format says, else what the address
 * itself says it is. */
static size_t addr_stride(const struct wfi_av *av, const void *addr)
{
	sa_family_t family;

	switch (av->domain->addr_format) {
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	default:
		memcpy(&family, addr, sizeof(family));
		return family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in);
	}
}

static int av_insert(struct fid_av *fid, const void *addr, size_t count,
		     fi_addr_t *fi_addr, uint64_t flags, void *context)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	struct wfi_av_batch batch;
	const char *at = addr;
	int rc;

	if (count && !addr)
		return -FI_EINVAL;
	if (count > INT32_MAX)
		return -FI_EINVAL;
	rc = wfi_av_batch_begin(&batch, av, count ? fi_addr : &(fi_addr_t){0}, flags,
				context);
	if (rc)
		return rc;
	wfi_domain_lock(av->domain);
	for (size_t i = 0; i < count; i++) {
		size_t len = addr_stride(av, at);
		struct sockaddr_in6 copy; /* the caller's may lie at any address */
		struct wire_addr normal;
		bool good;

		memcpy(&copy, at, len);
		good = wire_addr_from_sockaddr(&normal, (struct sockaddr *)&copy,
					       (socklen_t)len);
		wfi_av_batch_add(&batch, good ? &normal : NULL, FI_EINVAL);
		at += len;
	}
	wfi_domain_unlock(av->domain);
	if (batch.good < count)
		FI_INFO(&weft_provider, FI_LOG_AV,
			"insert: %zu of %zu addresses have no host or no port, or are of "
			"another family than the domain\n",
			count - batch.good, count);
	return wfi_av_batch_end(&batch);
}

/* ---- removing and looking up
 * ----------------------------------------------------------- */

static int av_remove(struct fid_av *fid, fi_addr_t *fi_addr, size_t count, uint64_t flags)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	int rc = 0;

	if (flags)
		return -FI_EBADFLAGS;
	if (av->share && av_share_is_read_only(av->share))
		return -FI_EACCES;
	wfi_domain_lock(av->domain);
	/* From the last to the first, so that a table shrinks as it grew. */
	for (size_t i = count; i-- > 0;) {
		if (!wfi_av_addr(av, fi_addr[i])) {
			rc = -FI_EINVAL;
			continue;
		}
		list_foreach (pos, &av->users) {
			struct wfi_av_user *u =
				container_of(pos, struct wfi_av_user, node);

			u->removed(u, fi_addr[i]);
		}
		av_table_remove(&av->table, (uint32_t)fi_addr[i]);
		if (av->share)
			av_share_remove(av->share, (uint32_t)fi_addr[i]);
	}
	wfi_domain_unlock(av->domain);
	return rc;
}

#ifdef HAVE_STRUCT_FI_OPS_AV_SET_USER_ID
static int av_set_user_id(struct fid_av *fid, fi_addr_t fi_addr, fi_addr_t user_id,
			  uint64_t flags)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	int rc = -FI_EINVAL;

	if (flags)
		return -FI_EBADFLAGS;
	wfi_domain_lock(av->domain);
	if (av->ids_later && wfi_av_addr(av, fi_addr)) {
		av->table.rows[fi_addr].user_id = user_id;
		list_foreach (pos, &av->users) {
			struct wfi_av_user *u =
				container_of(pos, struct wfi_av_user, node);

			u->renamed(u, fi_addr);
		}
		rc = 0;
	}
	wfi_domain_unlock(av->domain);
	if (!rc)
		tell_owners(av);
	return rc;
}
#endif

static int av_lookup(struct fid_av *fid, fi_addr_t fi_addr, void *addr, size_t *addrlen)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	const struct wire_addr *found;
	uint32_t context;
	size_t len, room = *addrlen;
	int rc = -FI_EINVAL;

	wfi_domain_lock(av->domain);
	if (av->share)
		wfi_av_sync(av);
	found = wfi_av_addr(av, wfi_av_split(av, fi_addr, &context));
	if (found) {
		len = wire_addr_len(found);
		memcpy(addr, found, room < len ? room : len);
		*addrlen = len;
		rc = 0;
	}
	wfi_domain_unlock(av->domain);
	return rc;
}

static int av_no_set(struct fid_av *av, struct fi_av_set_attr *attr,
		     struct fid_av_set **av_set, void *context)
{
	(void)av;
	(void)attr;
	(void)av_set;
	(void)context;
	return -FI_ENOSYS;
}

/* ---- life
 * ------------------------------------------------------------------------------ */

static int av_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	struct wfi_eq *eq = wfi_eq_of(bfid);

	if (!eq || av->eq)
		return -FI_EINVAL;
	if (flags)
		return -FI_EBADFLAGS;
	wfi_eq_get(eq);
	av->eq = eq;
	return 0;
}

static int av_close(struct fid *fid)
{
	struct wfi_av *av = (struct wfi_av *)fid;
	bool busy;

	if (wfi_domain_is_inherited(av->domain))
		return 0;
	wfi_domain_lock(av->domain);
	busy = !list_empty(&av->users);
	wfi_domain_unlock(av->domain);
	if (busy) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"close: endpoints are still bound to this vector\n");
		return -FI_EBUSY;
	}
	if (av->eq)
		wfi_eq_put(av->eq);
	if (av->share)
		av_share_close(av->share);
	av_table_fini(&av->table);
	wfi_domain_put(av->domain);
	free(av);
	return 0;
}

static struct fi_ops av_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = av_close,
	.bind = av_bind,
	.control = wfi_no_control,
	.ops_open = wfi_no_ops_open,
	.tostr = wfi_no_tostr,
	.ops_set = wfi_no_ops_set,
};

static struct fi_ops_av av_ops = {
	.size = sizeof(struct fi_ops_av),
	.insert = av_insert,
	.insertsvc = wfi_av_insertsvc,
	.insertsym = wfi_av_insertsym,
	.remove = av_remove,
	.lookup = av_lookup,
	.straddr = wfi_av_straddr,
	.av_set = av_no_set,
#ifdef HAVE_STRUCT_FI_OPS_AV_SET_USER_ID
	.set_user_id = av_set_user_id,
#endif
};

/* Ids that are set later need the call that sets them. */
#ifdef HAVE_STRUCT_FI_OPS_AV_SET_USER_ID
#define IDS_LATER FI_AV_USER_ID
#else
#define IDS_LATER 0
#endif

static int av_check(const struct fi_av_attr *attr)
{
	if (attr->type > FI_AV_TABLE)
		return -FI_EINVAL;
	if (attr->rx_ctx_bits < 0 || attr->rx_ctx_bits > CONTEXT_BITS_MAX) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"rx_ctx_bits: asked %d, at most %d are left for them\n",
			attr->rx_ctx_bits, CONTEXT_BITS_MAX);
		return -FI_EINVAL;
	}
	if ((attr->flags & FI_READ) && !attr->name) {
		FI_INFO(&weft_provider, FI_LOG_AV,
			"FI_READ is for a vector that has a name and is there\n");
		return -FI_EINVAL;
	}
	if (attr->flags &
	    ~(FI_READ | FI_EVENT | FI_SYMMETRIC | FI_UNIVERSE | IDS_LATER)) {
		FI_INFO(&weft_provider, FI_LOG_AV, "flags 0x%llx are not supported\n",
			(unsigned long long)attr->flags);
		return -FI_EBADFLAGS;
	}
	return 0;
}

int wfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **fid,
		void *context)
{
	struct wfi_av *av;
	int rc;

	if (!attr)
		return -FI_EINVAL;
	rc = av_check(attr);
	if (rc)
		return rc;
	av = calloc(1, sizeof(*av));
	if (!av)
		return -FI_ENOMEM;
	av_table_init(&av->table);
	list_init(&av->users);
	av->domain = wfi_domain_of(domain);
	av->type = attr->type ? attr->type : FI_AV_TABLE;
	av->context_bits = attr->rx_ctx_bits;
	av->async = attr->flags & FI_EVENT;
	av->ids_later = attr->flags & IDS_LATER;
	av->fid.fid.fclass = FI_CLASS_AV;
	av->fid.fid.context = context;
	av->fid.fid.ops = &av_fi_ops;
	av->fid.ops = &av_ops;
	if (attr->name) {
		rc = wfi_av_share(av, attr);
		if (rc) {
			av_table_fini(&av->table);
			free(av);
			return rc;
		}
	}
	/* count is a hint of how many will come; rows are made when they do. */
	wfi_domain_get(av->domain);
	*fid = &av->fid;
	return 0;
}
