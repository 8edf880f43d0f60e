/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects of another provider; see import.h. */
#include "config.h"

#include "prov/fi/import.h"

#include <stddef.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "prov/fi/cq.h"
#include "prov/mem/params.h"

#ifdef HAVE_STRUCT_FI_PEER_MATCH_ATTR
#include <rdma/providers/fi_peer.h>

bool wfi_import_can(void)
{
	return fi_version() == FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

static int refuse(const char *what, const char *why)
{
	FI_WARN(&weft_provider, FI_LOG_CORE, "FI_PEER, %s: %s\n", what, why);
	return -FI_EINVAL;
}

static const char *const other_version =
	"Weft was built with another version of libfabric than the one that runs";
static const char *const no_context =
	"the context must be the structure of fi_peer(3), with the owner's object in it";
static const char *const no_ops = "the owner's object lacks operations";

int wfi_import_cq(const void *context, struct fid_peer_cq **out)
{
	const struct fi_peer_cq_context *c = context;
	const struct fi_ops_cq_owner *ops;

	if (!wfi_import_can()) {
		return refuse("completion queue", other_version);
	}
	if (!c || c->size < sizeof(*c) || !c->cq) {
		return refuse("completion queue", no_context);
	}
	ops = c->cq->owner_ops;
	if (!ops || ops->size < sizeof(*ops) || !ops->write || !ops->writeerr) {
		return refuse("completion queue", no_ops);
	}
	*out = c->cq;
	return 0;
}

int wfi_import_cntr(const void *context, struct fid_peer_cntr **out)
{
	const struct fi_peer_cntr_context *c = context;
	const struct fi_ops_cntr_owner *ops;

	if (!wfi_import_can()) {
		return refuse("counter", other_version);
	}
	if (!c || c->size < sizeof(*c) || !c->cntr) {
		return refuse("counter", no_context);
	}
	ops = c->cntr->owner_ops;
	if (!ops || ops->size < sizeof(*ops) || !ops->inc || !ops->incerr) {
		return refuse("counter", no_ops);
	}
	*out = c->cntr;
	return 0;
}

bool wfi_import_write(struct fid_peer_cq *owner, const struct wfi_cq_entry *entry)
{
	return owner->owner_ops->write(owner, entry->op_context, entry->flags, entry->len,
				       entry->buf, entry->data, entry->tag,
				       entry->src) == 0;
}

bool wfi_import_write_error(struct fid_peer_cq *owner, const struct wfi_cq_error *error)
{
	const struct fi_cq_err_entry e = {
		.op_context = error->entry.op_context,
		.flags = error->entry.flags,
		.len = error->entry.len,
		.buf = error->entry.buf,
		.data = error->entry.data,
		.tag = error->entry.tag,
		.olen = error->olen,
		.err = error->err,
		.prov_errno = error->prov_errno,
		.src_addr = error->entry.src,
	};

	return owner->owner_ops->writeerr(owner, &e) == 0;
}

void wfi_import_inc(struct fid_peer_cntr *owner)
{
	owner->owner_ops->inc(owner);
}

void wfi_import_inc_error(struct fid_peer_cntr *owner)
{
	owner->owner_ops->incerr(owner);
}

#else /* nothing to import from: nobody gets as far as the calls below the first three \
       */

bool wfi_import_can(void)
{
	return false;
}

static int refuse(void)
{
	FI_INFO(&weft_provider, FI_LOG_CORE,
		"FI_PEER: this libfabric has no peer interface of 2.0 or later\n");
	return -FI_EINVAL;
}

int wfi_import_cq(const void *context, struct fid_peer_cq **out)
{
	(void)context;
	(void)out;
	return refuse();
}

int wfi_import_cntr(const void *context, struct fid_peer_cntr **out)
{
	(void)context;
	(void)out;
	return refuse();
}

bool wfi_import_write(struct fid_peer_cq *owner, const struct wfi_cq_entry *entry)
{
	(void)owner;
	(void)entry;
	return false;
}

bool wfi_import_write_error(struct fid_peer_cq *owner, const struct wfi_cq_error *error)
{
	(void)owner;
	(void)error;
	return false;
}

void wfi_import_inc(struct fid_peer_cntr *owner)
{
	(void)owner;
}

void wfi_import_inc_error(struct fid_peer_cntr *owner)
{
	(void)owner;
}

#endif
