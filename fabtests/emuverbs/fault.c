/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults: the script of the setup. */
#include "config.h"

#include "fabtests/emuverbs/fault.h"

#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/qp.h"
#include "fabtests/emuverbs/req.h"

static bool alive(struct emu_qp *qp)
{
	enum ibv_qp_state s = qp ? emu_qp_state(qp) : IBV_QPS_RESET;

	return s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD;
}

/* Every queue pair ends: whoever waits for something hears that retries were in vain. */
static void port_down(struct emu_dev *dev)
{
	if (dev->down)
		return;
	dev->down = true;
	for (unsigned i = 0; dev->qp && i < EMU_INDEXES; i++)
		if (alive(dev->qp[i]))
			emu_req_fail(dev->qp[i], IBV_WC_RETRY_EXC_ERR);
	emu_event_port(dev, IBV_EVENT_PORT_ERR);
}

static void port_up(struct emu_dev *dev)
{
	if (!dev->down)
		return;
	dev->down = false;
	emu_event_port(dev, IBV_EVENT_PORT_ACTIVE);
}

void emu_fault_start(void)
{
}

static void happen(struct emu_dev *dev, const struct emu_fault *f, struct emu_swqe *w)
{
	if (f->action == EMU_PORT_DOWN)
		port_down(dev);
	else if (f->action == EMU_PORT_UP)
		port_up(dev);
	else
		w->fault = f->action;
}

void emu_fault_count(struct emu_qp *qp, struct emu_swqe *w)
{
	struct emu_dev *dev = qp->dev;

	while (dev->next_fault < emu.setup.faults) {
		const struct emu_fault *f = &emu.setup.fault[dev->next_fault];

		if (f->device == dev->index) {
			if (f->after > dev->posted)
				break;
			happen(dev, f, w);
		}
		dev->next_fault++;
	}
	dev->posted++;
}

void emu_fault_timers(uint64_t now)
{
	(void)now;
}
