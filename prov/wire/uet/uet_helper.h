/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that stands in for an application which makes no calls (rule D6): who dials is
 * answered, puts and gets of peers are carried out, what was sent is sent again until it
 * is there. It never calls upwards. Asleep when there is nothing to do, and most of the
 * time where the application makes calls.
 */
#ifndef WEFT_WIRE_UET_UET_HELPER_H
#define WEFT_WIRE_UET_UET_HELPER_H

#include "prov/wire/wire.h"

struct uet_helper;

/* -FI_ENOMEM, -FI_EMFILE, -FI_EAGAIN: the system has no thread. */
int uet_helper_start(struct wire_ep *ep, struct uet_helper **helper);
/* Not from inside of a call of the endpoint, and before any of it goes away. */
void uet_helper_stop(struct uet_helper *helper);

#endif
