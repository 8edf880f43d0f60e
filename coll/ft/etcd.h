/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a coordinator keeps, in etcd: by its HTTP gateway (v3), in clear or with TLS. Who
 * leads holds the key PREFIX/leader by a lease that it renews; everything is written
 * under the condition that the key is still its own, so one that was replaced, and does
 * not know it, can't keep anything, and so nobody hears what it says (G2). Since all
 * coordinators of a job see what any of them kept, they are one lineage.
 *
 * PREFIX/state is a snapshot; PREFIX/commit the last step that counted since.
 */
#ifndef WEFT_FT_ETCD_H
#define WEFT_FT_ETCD_H

#include "coll/ft/keep.h"

struct ft_etcd;

/* Without a lease that is renewed so often another leads. Seconds. */
enum { FT_ETCD_LEASE = 5 };

/* name: "etcd://host:port/prefix", or "etcds://..." with TLS: the server's certificate
 * must be host's and signed by an authority of the file WEFT_ETCD_CA (else by one that
 * the system knows); ours is in WEFT_ETCD_CERT, its key in WEFT_ETCD_KEY. -EAGAIN:
 * another leads. */
int ft_etcd_open(const char *name, const char *address, const uint8_t *job,
		 struct ft_etcd **etcd, const struct ft_durable **kept,
		 char why[FT_KEEP_WHY]);

/* Gives the lead back. May be NULL. */
void ft_etcd_close(struct ft_etcd *etcd);

bool ft_etcd_save(struct ft_etcd *etcd, enum ft_saved what, const struct ft_durable *d);
bool ft_etcd_lost(const struct ft_etcd *etcd);
const char *ft_etcd_why(const struct ft_etcd *etcd);

#endif
