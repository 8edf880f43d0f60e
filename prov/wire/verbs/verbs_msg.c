/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages about lanes: written and read here and nowhere else. */
#include "config.h"

#include "prov/wire/verbs/verbs_msg.h"

#include <errno.h>
#include <string.h>

#define MSG_24BIT 0xffffffu

int verbs_msg_read(const void *bytes, size_t len, struct verbs_msg *m)
{
	struct verbs_msg_bytes b;

	if (len != sizeof(b))
		return -EPROTO;
	memcpy(&b, bytes, sizeof(b));
	if (b.op == 0 || b.op >= VERBS_MSG_OPS)
		return -EPROTO;
	*m = (struct verbs_msg){.op = b.op,
				.rail = b.rail,
				.lane = le16_get(b.lane),
				.incarnation = le32_get(b.incarnation),
				.qpn = le32_get(b.qpn),
				.psn = le32_get(b.psn),
				.lid = le16_get(b.lid)};
	memcpy(m->gid, b.gid, sizeof(m->gid));
	if (m->qpn > MSG_24BIT || m->psn > MSG_24BIT)
		return -EPROTO;
	if ((b.op == VERBS_MSG_OPEN || b.op == VERBS_MSG_OPENED ||
	     b.op == VERBS_MSG_SPARE) &&
	    m->qpn == 0)
		return -EPROTO;
	return 0;
}

void verbs_msg_write(void *bytes, const struct verbs_msg *m)
{
	struct verbs_msg_bytes b = {.op = (uint8_t)m->op,
				    .rail = m->rail,
				    .lane = le16_of(m->lane),
				    .incarnation = le32_of(m->incarnation),
				    .qpn = le32_of(m->qpn),
				    .psn = le32_of(m->psn),
				    .lid = le16_of(m->lid)};

	memcpy(b.gid, m->gid, sizeof(b.gid));
	memcpy(bytes, &b, sizeof(b));
}
