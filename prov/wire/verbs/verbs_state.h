/* SPDX-License-Identifier: BSD-2-Clause */
/* What a link that stands still waits for, in the log. Endpoint lock. */
#ifndef WEFT_WIRE_VERBS_VERBS_STATE_H
#define WEFT_WIRE_VERBS_VERBS_STATE_H

#include <stdint.h>

struct verbs_link;

/* Its control channel, rails, lanes and both machines; nothing of it ended for so long.
 */
void verbs_state_say(const struct verbs_link *link, uint64_t stood_ns);

#endif
