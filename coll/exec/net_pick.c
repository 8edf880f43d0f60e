/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See net_pick.h. What is asked for goes from the most to the least that collectives can
 * use: RMA with remote CQ data first, then messages only; registration of memory that
 * need not stay mapped first, then the kind that pins it.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/net_pick.h"

/* Below this a READY costs more than the copy that an eager message makes. */
#define PICK_MESSAGE_MAX ((size_t)16 << 10)
/* Without put nothing is gained by READY but back pressure. */
#define PICK_MESSAGE_ONLY_MAX ((size_t)64 << 10)

/* Up to this size a send of libfabric's shm completes by itself. A longer one whose
 * receive was cancelled under way (by a call that failed) never completes with 1.17, and
 * its buffer would never be safe: those wait for READY and go as puts. */
#define PICK_SHM_MAX ((size_t)4 << 10)

/* Weft's own provider announces a long message and lets the receiver fetch it straight
 * between the two ranges, into the receiver's cache: that needs no READY, and costs no
 * memory where it comes too early. Longer ones wait for READY, so that a call that fails
 * has little in flight. */
#define PICK_LONG_MAX ((size_t)1 << 20)

#define PICK_VERSION NET_API_VERSION

struct pick_try {
	bool put;
	bool allocated;
};

static const struct pick_try pick_tries[] = {
	{.put = true, .allocated = false},
	{.put = true, .allocated = true},
	{.put = false, .allocated = false},
	{.put = false, .allocated = true},
};

static struct fi_info *pick_hints(const struct net_attr *attr, struct pick_try try)
{
	struct fi_info *hints = fi_allocinfo();

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	if (try.put)
		hints->caps |= FI_RMA | FI_WRITE | FI_REMOTE_WRITE | FI_SEND | FI_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->msg_order = FI_ORDER_SAS;
	hints->rx_attr->msg_order = FI_ORDER_SAS;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY;
	if (try.allocated)
		hints->domain_attr->mr_mode |= FI_MR_ALLOCATED;
	if (attr->provider)
		hints->fabric_attr->prov_name = strdup(attr->provider);
	if (attr->domain)
		hints->domain_attr->name = strdup(attr->domain);
	return hints;
}

static const char *pick_name(const struct fi_info *info)
{
	return info->fabric_attr && info->fabric_attr->prov_name
		       ? info->fabric_attr->prov_name
		       : "?";
}

static bool pick_domain_fits(const struct net_attr *attr, const struct fi_info *info)
{
	/* libfabric 1.17 does not compare domain names for every provider. */
	return !attr->domain || (info->domain_attr->name &&
				 strcmp(info->domain_attr->name, attr->domain) == 0);
}

/* sockets is slow and in maintenance only; it is taken where it is the only one. */
static bool pick_is_last_resort(const struct fi_info *info)
{
	return strstr(pick_name(info), "sockets") || strstr(pick_name(info), "udp");
}

/* Where nobody named a provider: weft where it is loaded, else the first of libfabric's
 * list (which is sorted by speed) that can reach other hosts. */
static struct fi_info *pick_best(const struct net_attr *attr, struct fi_info *list)
{
	const bool named = attr->provider || getenv("FI_PROVIDER");
	struct fi_info *best = NULL;

	for (struct fi_info *i = list; i; i = i->next) {
		if (!pick_domain_fits(attr, i))
			continue;
		if (named)
			return i;
		if (strcmp(pick_name(i), "weft") == 0)
			return i;
		if (strcmp(pick_name(i), "shm") == 0)
			continue;
		if (!best || (pick_is_last_resort(best) && !pick_is_last_resort(i)))
			best = i;
	}
	return best;
}

/* The duplicate of the chosen entry, or NULL with *rc. */
static struct fi_info *pick_try_one(const struct net_attr *attr, struct pick_try try,
				    int *rc)
{
	struct fi_info *hints = pick_hints(attr, try), *list = NULL, *best, *copy = NULL;

	if (!hints) {
		*rc = -FI_ENOMEM;
		return NULL;
	}
	*rc = fi_getinfo(PICK_VERSION, NULL, NULL, 0, hints, &list);
	fi_freeinfo(hints);
	if (*rc)
		return NULL;
	best = pick_best(attr, list);
	*rc = -FI_ENODATA;
	if (best && (!try.put || best->domain_attr->cq_data_size >= 8)) {
		copy = fi_dupinfo(best);
		*rc = copy ? 0 : -FI_ENOMEM;
	}
	fi_freeinfo(list);
	return copy;
}

/* Whether the provider offers FI_DELIVERY_COMPLETE besides what was chosen. */
static bool pick_delivery(const struct net_attr *attr, const struct fi_info *info)
{
	struct pick_try try = {.put = true,
			       .allocated = info->domain_attr->mr_mode & FI_MR_ALLOCATED};
	struct fi_info *hints = pick_hints(attr, try), *list = NULL;
	bool found = false;

	if (!hints)
		return false;
	free(hints->fabric_attr->prov_name);
	hints->fabric_attr->prov_name = strdup(pick_name(info));
	hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	if (fi_getinfo(PICK_VERSION, NULL, NULL, 0, hints, &list) == 0) {
		found = list != NULL;
		fi_freeinfo(list);
	}
	fi_freeinfo(hints);
	return found;
}

static enum weft_result pick_none(const struct net_attr *attr, int rc)
{
	const char *asked = attr->provider ? attr->provider : getenv("FI_PROVIDER");
	char list[512];

	net_provider_list_all(list, sizeof(list));
	return error_set(WEFT_ERR_PROVIDER,
			 "no libfabric provider for %s%s%s with tagged messages over "
			 "FI_EP_RDM and FI_DIRECTED_RECV (%s); those there are: %s. Set "
			 "FI_PROVIDER to one "
			 "of them or unset it; why another is missing: weft info",
			 asked ? asked : "any name", attr->domain ? " on domain " : "",
			 attr->domain ? attr->domain : "", fi_strerror(-rc), list);
}

enum weft_result net_pick(const struct net_attr *attr, struct fi_info **info,
			  struct net_caps *caps)
{
	const size_t tries = sizeof(pick_tries) / sizeof(pick_tries[0]);
	struct fi_info *found = NULL;
	int rc = -FI_ENODATA;
	size_t i;

	for (i = 0; i < tries && !found; i++) {
		if (attr->no_put && pick_tries[i].put)
			continue;
		found = pick_try_one(attr, pick_tries[i], &rc);
		caps->put = pick_tries[i].put;
	}
	if (!found)
		return pick_none(attr, rc);
	caps->get =
		caps->put && !attr->no_get &&
		(found->caps & (FI_READ | FI_REMOTE_READ)) == (FI_READ | FI_REMOTE_READ);
	caps->data = found->domain_attr->cq_data_size >= 8 && !attr->no_data;
	/* With libfabric 1.17 a message longer than its receive makes shm loop for ever
	 * and tcp close the connection. */
	caps->truncates = strcmp(pick_name(found), "weft") == 0;
	caps->put_pieces = caps->put && pick_delivery(attr, found);
	caps->message_max = caps->put ? PICK_MESSAGE_MAX : PICK_MESSAGE_ONLY_MAX;
	if (caps->message_max < found->tx_attr->inject_size)
		caps->message_max = found->tx_attr->inject_size;
	if (strcmp(pick_name(found), "shm") == 0)
		caps->message_max = PICK_SHM_MAX;
	caps->long_max = caps->message_max;
	if (strcmp(pick_name(found), "weft") == 0)
		caps->long_max = PICK_LONG_MAX;
	if (attr->message_max)
		caps->message_max = caps->long_max = attr->message_max;
	*info = found;
	return WEFT_SUCCESS;
}
