/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a coordinator keeps what it must: a file of its host (keep.h), or a store that
 * several hosts share (etcd.h), through which another coordinator can take over.
 */
#ifndef WEFT_FT_STORE_H
#define WEFT_FT_STORE_H

#include "coll/ft/keep.h"

struct ft_store;

/* name: a file, or "etcd://host:port/prefix". address is told to who asks who leads. As
 * ft_keep_open(); -EAGAIN: another coordinator leads (why says which): ask again. */
int ft_store_open(const char *name, const char *address, const uint8_t *job,
		  struct ft_store **store, const struct ft_durable **kept,
		  char why[FT_KEEP_WHY]);
void ft_store_close(struct ft_store *store); /* may be NULL */

bool ft_store_save(struct ft_store *store, enum ft_saved what,
		   const struct ft_durable *d);

/* Whether another may have taken over: nothing can be saved any more. */
bool ft_store_lost(const struct ft_store *store);

/* Why the last save failed, or it is lost. Between calls of save. */
const char *ft_store_why(const struct ft_store *store);

#endif
