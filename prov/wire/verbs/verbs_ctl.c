/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the control channel. Rules B1, B3. */
#include "config.h"

#include "prov/wire/verbs/verbs_ctl.h"

#include <errno.h>
#include <string.h>

/* A quarter and an eighth are left to others, and never nothing. */
void verbs_ctl_window(struct verbs_ctl *c, uint32_t window)
{
	c->window = window;
	c->limit[VERBS_CTL_DATA] = window - (window < 8 ? 2 : window / 4);
	c->limit[VERBS_CTL_CONTROL] = window - (window < 8 ? 1 : window / 8);
	c->limit[VERBS_CTL_OWN] = window;
}

void verbs_ctl_init(struct verbs_ctl *c, uint32_t window, uint32_t grant)
{
	memset(c, 0, sizeof(*c));
	verbs_ctl_window(c, window);
	c->grant = c->grant_told = grant;
}

int verbs_ctl_resume(struct verbs_ctl *c, uint64_t peer_heard)
{
	if (peer_heard < c->una || peer_heard > c->high)
		return -EPROTO;
	c->una = peer_heard;
	c->sent = peer_heard;
	/* As it was told so. */
	c->told = atomic_load_explicit(&c->heard, memory_order_relaxed);
	return 0;
}
