/* SPDX-License-Identifier: BSD-2-Clause */
/* See uet_peek.h. */
#include "config.h"

#include "prov/wire/uet/tests/uet_peek.h"

#include "prov/wire/uet/uet_pds_int.h"

unsigned uet_peek_flying(const struct uet_pdc *pdc, uint64_t moment, unsigned *after)
{
	unsigned n = 0;

	*after = 0;
	for (uint32_t psn = pdc->tx.una; psn != pdc->tx.next; psn++) {
		const struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state != UET_SLOT_FLYING || !s->payload_len)
			continue;
		n++;
		*after += s->sent_at > moment && !s->untimed;
	}
	return n;
}

uint32_t uet_peek_wide(const struct uet_pdc *pdc)
{
	return (uint32_t)((pdc->cc.cwnd + pdc->cc.packet - 1) / pdc->cc.packet);
}
