/* SPDX-License-Identifier: BSD-2-Clause */
/* The uet wire's table. */
#include "config.h"

#include "prov/wire/uet/uet.h"

#include "prov/wire/uet/uet_ep.h"
#include "prov/wire/uet/uet_link.h"
#include "prov/wire/uet/uet_rma.h"

const struct wire_ops uet_wire_ops = {
	.name = "uet",
	.what = "UDP, in the style of Ultra Ethernet's transport",
	.remote = true,
	.asked = true,
	.caps = {.lanes = 1, .max_packet = UET_PACKET, .max_segment = (size_t)1 << 30},
	.ep_open = uet_ep_open,
	.ep_close = uet_ep_close,
	.dial = uet_dial,
	.hangup = uet_hangup,
	.pkt_reserve = uet_pkt_reserve,
	.pkt_commit = uet_pkt_commit,
	.put = uet_put,
	.get = uet_get,
	.events = uet_events,
	.progress = uet_progress,
	.arm = uet_arm,
	.fd = uet_fd,
	.look_due = uet_look_due,
	.quiesce = uet_quiesce,
};
