/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared-memory wire's table. */
#include "config.h"

#include "prov/wire/shm/shm.h"

#include "prov/wire/shm/shm_bulk.h"
#include "prov/wire/shm/shm_connect.h"
#include "prov/wire/shm/shm_ep.h"
#include "prov/wire/shm/shm_joint.h"
#include "prov/wire/shm/shm_link.h"
#include "prov/wire/shm/shm_rma.h"
#include "prov/wire/shm/shm_route.h"

const struct wire_ops shm_wire_ops = {
	.name = "shm",
	.what = "shared memory between processes of one host",
	.caps = {.lanes = 1,
		 .max_packet = SHM_MAX_PACKET,
		 .max_segment = SIZE_MAX / 2,
		 .imm = false,
		 .ordered = true,
		 .passive = true,
		 .raw = true,
		 .bulk = SHM_BULK_SLOT,
		 .joints = SHM_JOINTS},
	.ep_open = shm_ep_open,
	.ep_close = shm_ep_close,
	.dial = shm_dial,
	.hangup = shm_hangup,
	.pkt_reserve = shm_pkt_reserve,
	.pkt_commit = shm_pkt_commit,
	.put = shm_put,
	.get = shm_get,
	.move_device = shm_move_device,
	.events = shm_events,
	.put_now = shm_put_now,
	.get_now = shm_get_now,
	.bulk_get = shm_bulk_get,
	.bulk_put = shm_bulk_put,
	.bulk_peer = shm_bulk_peer,
	.bulk_holds = shm_bulk_holds,
	.joint_open = shm_joint_open,
	.joint_take = shm_joint_take,
	.joint_did = shm_joint_did,
	.joint_look = shm_joint_look,
	.joint_close = shm_joint_close,
	.joint_quiet = shm_joint_quiet,
	.progress = shm_progress,
	.arm = shm_arm,
	.fd = shm_fd,
	.look_due = shm_look_due,
	.quiesce = shm_quiesce,
};
