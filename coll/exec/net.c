/* SPDX-License-Identifier: BSD-2-Clause */
/* See net.h: the life of the endpoint, its addresses, operation contexts and the CQ. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "coll/api/error.h"
#include "coll/exec/net.h"
#include "coll/exec/net_pick.h"

#define NET_POLL_BATCH 32 /* completions read at a time */
#define NET_CQ_SIZE    4096
#define NET_RENAMES    8 /* names tried when one is taken */

/* Libraries below a provider may have a word of their own for what has no room. */
#define NET_FILES_FEW 1024

static bool net_files_few(char *text, size_t len)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= NET_FILES_FEW)
		return false;
	snprintf(text, len,
		 "%llu files may be open, which may be why: ulimit -n 65536, and "
		 "FI_LOG_LEVEL=warn has the provider say more",
		 (unsigned long long)limit.rlim_cur);
	return true;
}

static enum weft_result net_failed(const struct net *net, const char *what, int rc)
{
	char files[128];
	const char *cure =
		rc == -FI_ENOMEM ? "see weft doctor, which looks at the limits of memory"
		: net_files_few(files, sizeof(files)) ? files
		: rc == -FI_EMFILE || rc == -ENFILE
			? "raise the limit: ulimit -n 65536"
			: "FI_LOG_LEVEL=warn has the provider say why";

	return error_set(WEFT_ERR_PROVIDER, "provider %s: %s failed: %s; %s",
			 net->info ? net->info->fabric_attr->prov_name : "?", what,
			 fi_strerror(-rc), cure);
}

static enum weft_result net_open_objects(struct net *net)
{
	struct fi_cq_attr cq_attr = {
		.size = NET_CQ_SIZE,
		.format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_NONE,
	};
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	int rc;

	rc = fi_fabric(net->info->fabric_attr, &net->fabric, NULL);
	if (rc)
		return net_failed(net, "opening the fabric", rc);
	rc = fi_domain(net->fabric, net->info, &net->domain, NULL);
	if (rc)
		return net_failed(net, "opening the domain", rc);
	rc = fi_cq_open(net->domain, &cq_attr, &net->cq, NULL);
	if (rc)
		return net_failed(net, "opening the completion queue", rc);
	rc = fi_av_open(net->domain, &av_attr, &net->av, NULL);
	if (rc)
		return net_failed(net, "opening the address table", rc);
	rc = fi_endpoint(net->domain, net->info, &net->ep, NULL);
	if (rc)
		return net_failed(net, "opening the endpoint", rc);
	rc = fi_ep_bind(net->ep, &net->cq->fid, FI_TRANSMIT | FI_RECV);
	if (!rc)
		rc = fi_ep_bind(net->ep, &net->av->fid, 0);
	if (!rc)
		rc = fi_enable(net->ep);
	net->taken = rc == -FI_EBUSY;
	if (rc)
		return net_failed(net, "enabling the endpoint", rc);
	return WEFT_SUCCESS;
}

static void net_close_fid(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

static void net_close_objects(struct net *net)
{
	net_close_fid(net->ep ? &net->ep->fid : NULL);
	net_close_fid(net->av ? &net->av->fid : NULL);
	net_close_fid(net->cq ? &net->cq->fid : NULL);
	net_close_fid(net->domain ? &net->domain->fid : NULL);
	net_close_fid(net->fabric ? &net->fabric->fid : NULL);
	net->ep = NULL;
	net->av = NULL;
	net->cq = NULL;
	net->domain = NULL;
	net->fabric = NULL;
}

void net_close(struct net *net)
{
	net_close_objects(net);
	if (net->info)
		fi_freeinfo(net->info);
	pool_fini(&net->ops);
	free(net->addr);
	memset(net, 0, sizeof(*net));
}

/*
 * shm names an endpoint after its process. Where a region of a dead process with the same
 * number was left behind, and its owner's number is in use again, the name is taken
 * (EBUSY) for good: another name, then. Only for providers whose addresses are strings.
 */
static bool net_rename(struct net *net, int again)
{
	const char *old = net->info->src_addr;
	char name[NET_NAME_MAX];
	int len;

	if (net->info->addr_format != FI_ADDR_STR || !old || again > NET_RENAMES)
		return false;
	len = snprintf(name, sizeof(name), "%.*s.%d", NET_NAME_MAX / 2, old, again);
	free(net->info->src_addr);
	net->info->src_addr = strdup(name);
	net->info->src_addrlen = (size_t)len + 1;
	return net->info->src_addr != NULL;
}

enum weft_result net_open(const struct net_attr *attr, struct net *net)
{
	enum weft_result result;
	uint64_t mr_mode;
	int again = 0;

	memset(net, 0, sizeof(*net));
	pool_init(&net->ops, sizeof(struct net_op));
	result = net_pick(attr, &net->info, &net->caps);
	if (result != WEFT_SUCCESS)
		return result;
	mr_mode = (uint64_t)net->info->domain_attr->mr_mode;
	net->mr_local = mr_mode & FI_MR_LOCAL;
	net->mr_prov_key = mr_mode & FI_MR_PROV_KEY;
	net->mr_virt_addr = mr_mode & FI_MR_VIRT_ADDR;
	net->mr_allocated = attr->per_call || mr_mode & FI_MR_ALLOCATED;
	net->iov_limit = net->info->tx_attr->iov_limit;
	if (net->info->rx_attr->iov_limit < net->iov_limit)
		net->iov_limit = net->info->rx_attr->iov_limit;
	if (net->iov_limit > NET_IOV_MAX)
		net->iov_limit = NET_IOV_MAX;
	if (net->iov_limit == 0)
		net->iov_limit = 1;
	net->transfer_max = net->info->ep_attr->max_msg_size;
	if (attr->transfer_max && attr->transfer_max < net->transfer_max)
		net->transfer_max = attr->transfer_max;
	result = net_open_objects(net);
	while (result != WEFT_SUCCESS && net->taken && net_rename(net, ++again)) {
		net_close_objects(net);
		error_clear();
		result = net_open_objects(net);
	}
	if (result != WEFT_SUCCESS)
		net_close(net);
	return result;
}

enum weft_result net_name(struct net *net, void *name, uint32_t *len)
{
	size_t bytes = NET_NAME_MAX;
	int rc = fi_getname(&net->ep->fid, name, &bytes);

	if (rc == -FI_ETOOSMALL)
		return error_set(WEFT_ERR_PROVIDER,
				 "provider %s: addresses of %zu bytes, at most %d are "
				 "supported",
				 net->info->fabric_attr->prov_name, bytes, NET_NAME_MAX);
	if (rc)
		return net_failed(net, "reading the own address", rc);
	*len = (uint32_t)bytes;
	return WEFT_SUCCESS;
}

enum weft_result net_peers_reserve(struct net *net, int32_t size)
{
	net->addr = calloc((size_t)size, sizeof(*net->addr));
	if (!net->addr)
		return error_set(WEFT_ERR_NOMEM, "no memory for %d addresses", size);
	net->size = size;
	return WEFT_SUCCESS;
}

enum weft_result net_peer_add(struct net *net, int32_t rank, const void *name)
{
	int rc = fi_av_insert(net->av, name, 1, &net->addr[rank], 0, NULL);

	if (rc == 1)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_PROVIDER,
			 "provider %s does not take the address of rank %d: %s",
			 net->info->fabric_attr->prov_name, rank,
			 rc < 0 ? fi_strerror(-rc) : "refused");
}

static void net_op_done(struct net_op *op, const struct net_result *result)
{
	/* Some providers report remote events of an endpoint with a context of
	 * their own: only ours have a function. */
	if (op && op->done)
		op->done(op, result);
}

/* 1 when an error entry was handled, 0 when there was none, or -FI_E... */
static int net_read_error(struct net *net)
{
	struct fi_cq_err_entry entry = {0};
	char words[128] = "";
	char text[192];
	struct net_result result;
	ssize_t rc = fi_cq_readerr(net->cq, &entry, 0);

	if (rc == -FI_EAGAIN || rc == 0)
		return 0;
	if (rc < 0)
		return (int)rc;
	if (entry.prov_errno)
		fi_cq_strerror(net->cq, entry.prov_errno, entry.err_data, words,
			       sizeof(words));
	snprintf(text, sizeof(text), "%s%s%s%s", fi_strerror(entry.err),
		 words[0] ? " (" : "", words, words[0] ? ")" : "");
	/* Some providers (shm of 1.17) report negative values. */
	if (entry.err < 0)
		entry.err = -entry.err;
	result = (struct net_result){.err = entry.err ? entry.err : FI_EOTHER,
				     .len = entry.olen,
				     .has_data = entry.flags & FI_REMOTE_CQ_DATA,
				     .data = entry.data,
				     .text = text};
	net_op_done(entry.op_context, &result);
	return 1;
}

static void net_entry(struct net *net, const struct fi_cq_tagged_entry *entry)
{
	const uint64_t remote = FI_REMOTE_CQ_DATA | FI_REMOTE_WRITE;
	struct net_result result = {.len = entry->len,
				    .has_data = entry->flags & FI_REMOTE_CQ_DATA,
				    .data = entry->data,
				    .text = ""};

	if ((entry->flags & remote) == remote)
		net->on_data(net->arg, entry->data);
	else
		net_op_done(entry->op_context, &result);
}

int net_progress(struct net *net)
{
	struct fi_cq_tagged_entry entry[NET_POLL_BATCH];
	ssize_t got = fi_cq_read(net->cq, entry, NET_POLL_BATCH);

	if (got == -FI_EAVAIL)
		return net_read_error(net);
	if (got == -FI_EAGAIN)
		return 0;
	for (ssize_t i = 0; i < got; i++)
		net_entry(net, &entry[i]);
	return (int)got;
}
