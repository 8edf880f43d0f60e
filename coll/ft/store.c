/* SPDX-License-Identifier: BSD-2-Clause */
/* See store.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/etcd.h"
#include "coll/ft/store.h"

/* One of them. */
struct ft_store {
	struct ft_keep *keep;
	struct ft_etcd *etcd;
};

int ft_store_open(const char *name, const char *address, const uint8_t *job,
		  struct ft_store **store, const struct ft_durable **kept,
		  char why[FT_KEEP_WHY])
{
	struct ft_store *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(why, FT_KEEP_WHY, "no memory");
		return -ENOMEM;
	}
	if (strncmp(name, "etcd:", 5) == 0 || strncmp(name, "etcds:", 6) == 0)
		rc = ft_etcd_open(name, address, job, &s->etcd, kept, why);
	else
		rc = ft_keep_open(name, job, &s->keep, kept, why);
	if (rc) {
		free(s);
		return rc;
	}
	*store = s;
	return 0;
}

void ft_store_close(struct ft_store *s)
{
	if (!s)
		return;
	ft_keep_close(s->keep);
	ft_etcd_close(s->etcd);
	free(s);
}

bool ft_store_save(struct ft_store *s, enum ft_saved what, const struct ft_durable *d)
{
	return s->keep ? ft_keep_save(s->keep, what, d) : ft_etcd_save(s->etcd, what, d);
}

bool ft_store_lost(const struct ft_store *s)
{
	return s->etcd && ft_etcd_lost(s->etcd);
}

const char *ft_store_why(const struct ft_store *s)
{
	return s->keep ? ft_keep_why(s->keep) : ft_etcd_why(s->etcd);
}
