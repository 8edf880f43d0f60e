/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a peer's hardware address is known. Over Ethernet a queue pair that becomes
 * ready to receive wants it, and the kernel looks for it meanwhile: a second for each
 * queue pair where nobody answers, with a lock held that others want. So it is asked
 * beforehand, and who isn't known is looked for without waiting.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_NEAR_H
#define WEFT_WIRE_VERBS_VERBS_NEAR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * By the interface of that index, GID to GID (of RoCE v2: IPv6, or IPv4 mapped into it).
 * False: it isn't, and the kernel is looking for it now: ask again a little later. True
 * also where the kernel doesn't say. Never waits.
 */
bool verbs_near_known(uint32_t ifindex, const uint8_t own[16], const uint8_t peer[16]);

#endif
