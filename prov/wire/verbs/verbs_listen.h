/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening ports of this process. Endpoints that are contexts of one address share its
 * port: whoever accepts a connection passes it to the door of the context that the first
 * frame names.
 *
 * Threads: all of it any thread; the registry's lock is below the wires' and held for
 * moments only.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_LISTEN_H
#define WEFT_WIRE_VERBS_VERBS_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/addr.h"
#include "prov/wire/verbs/verbs_frame.h"
#include "util/list.h"

struct verbs_listener;

/* A connection on its way to another door. */
struct verbs_passed {
	struct list node;
	int sock;
	struct wire_addr from;
	uint8_t head[VERBS_FRAME_HEAD]; /* what was read of it */
};

/* A door's place in the registry: the door fills fd, the rest is the registry's. */
struct verbs_inbox {
	struct list node; /* of the listener's doors */
	struct list passed;
	uint16_t context;
	int fd; /* eventfd: something was passed */
};

/* Binds and listens, or joins the listener that has the address already where it is
 * another context of it. Fills in port 0 and, where any was asked for, a host.
 * -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_EMFILE, -FI_ENOMEM, -FI_EACCES. */
int verbs_listen_open(struct wire_addr *addr, bool any, struct verbs_inbox *inbox,
		      struct verbs_listener **listener);
/* What was passed and not taken is closed. */
void verbs_listen_close(struct verbs_listener *listener, struct verbs_inbox *inbox);
/* Non-blocking; several doors may wait for it. */
int verbs_listen_fd(const struct verbs_listener *listener);

/* Passes a connection on. False: there is no such context, nothing was taken. */
bool verbs_listen_pass(struct verbs_listener *listener, uint16_t context,
		       const struct verbs_passed *what);
/* The next one that came; the caller frees it. NULL: none. */
struct verbs_passed *verbs_listen_take(struct verbs_inbox *inbox);

#endif
