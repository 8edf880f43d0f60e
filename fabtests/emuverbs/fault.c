/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults: the script of the setup, by segments that were posted and by the clock. */
#include "config.h"

#include "fabtests/emuverbs/fault.h"

#include <string.h>

#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/qp.h"
#include "fabtests/emuverbs/req.h"

/* A stall by count ends by the clock as well: nothing more may be posted. */
#define STALL_MAX 1000000000u

/* How far each line of the script is. */
static struct {
	bool over;
	uint64_t next; /* segments or ns */
	uint64_t end;  /* ns: a port comes up again; 0: nothing to end */
	/* Of a stall by count. */
	uint32_t number, cookie;
	uint64_t until;
} progress[EMU_FAULTS_MAX];

/* Of segments: what the next that is posted on the device suffers; -1: nothing. */
static int suffers[EMU_DEVICES_MAX];

static bool alive(struct emu_qp *qp)
{
	enum ibv_qp_state s = qp ? emu_qp_state(qp) : IBV_QPS_RESET;

	return s == IBV_QPS_RTR || s == IBV_QPS_RTS || s == IBV_QPS_SQD;
}

/* Every queue pair ends: whoever waits for something hears that retries were in vain. */
static void port_down(struct emu_dev *dev, bool lost)
{
	if (dev->down)
		return;
	dev->down = true;
	for (unsigned i = 0; dev->qp && i < EMU_INDEXES; i++)
		if (alive(dev->qp[i]))
			emu_req_fail(dev->qp[i], IBV_WC_RETRY_EXC_ERR);
	if (!lost)
		emu_event_port(dev, IBV_EVENT_PORT_ERR);
}

static void port_up(struct emu_dev *dev, bool lost)
{
	if (!dev->down)
		return;
	dev->down = false;
	if (!lost)
		emu_event_port(dev, IBV_EVENT_PORT_ACTIVE);
}

static void device_fatal(struct emu_dev *dev)
{
	if (dev->fatal)
		return;
	dev->fatal = true;
	for (unsigned i = 0; dev->qp && i < EMU_INDEXES; i++)
		if (alive(dev->qp[i]))
			emu_qp_error(dev->qp[i], false);
	emu_event_port(dev, IBV_EVENT_DEVICE_FATAL);
}

static void qp_kill(struct emu_qp *qp)
{
	emu_event_qp(qp, IBV_EVENT_QP_FATAL);
	emu_qp_error(qp, false);
}

/* One of those that can send; NULL: there is none. */
static struct emu_qp *any(struct emu_dev *dev)
{
	struct emu_qp *found = NULL;
	unsigned n = 0;

	for (unsigned i = 0; dev->qp && i < EMU_INDEXES; i++) {
		struct emu_qp *qp = dev->qp[i];

		if (qp && emu_qp_state(qp) == IBV_QPS_RTS && emu_random(++n) == 0)
			found = qp;
	}
	return found;
}

static void stall(const struct emu_fault *f, unsigned at, struct emu_qp *qp)
{
	emu_req_hold(qp, emu_now() + (f->lasts ? f->lasts : STALL_MAX));
	if (f->lasts)
		return;
	progress[at].number = emu_qp_ibv(qp)->qp_num;
	progress[at].cookie = qp->req.cookie;
	progress[at].until = qp->dev->posted + f->lasts_segments;
}

/* qp: whose segment it was; NULL: it was the clock. */
static void happen(unsigned at, struct emu_qp *qp)
{
	const struct emu_fault *f = &emu.setup.fault[at];
	struct emu_dev *dev = &emu.dev[f->device];

	if (!qp && (f->action == EMU_KILL_QP || f->action == EMU_STALL_QP)) {
		qp = any(dev);
		if (!qp)
			return;
	}
	switch (f->action) {
	case EMU_PORT_DOWN:
		port_down(dev, f->lost & EMU_LOST_DOWN);
		if (f->lasts) {
			progress[at].end = emu_now() + f->lasts;
			emu_due(progress[at].end);
		}
		break;
	case EMU_PORT_UP:
		port_up(dev, f->lost & EMU_LOST_UP);
		break;
	case EMU_DEVICE_FATAL:
		device_fatal(dev);
		break;
	case EMU_KILL_QP:
		qp_kill(qp);
		break;
	case EMU_STALL_QP:
		stall(f, at, qp);
		break;
	default:
		suffers[f->device] = f->action;
		break;
	}
}

void emu_fault_start(void)
{
	memset(progress, 0, sizeof(progress));
	for (unsigned i = 0; i < EMU_DEVICES_MAX; i++)
		suffers[i] = -1;
	for (unsigned i = 0; i < emu.setup.faults; i++) {
		const struct emu_fault *f = &emu.setup.fault[i];

		progress[i].over = f->host != 0 && f->host != emu.slot;
		progress[i].next = f->time;
		if (f->when < EMU_AT || progress[i].over)
			continue;
		progress[i].next += emu.began;
		emu_due(progress[i].next);
	}
}

/* A queue pair that was stalled by count, if it is still the same. */
static void release(struct emu_dev *dev, unsigned at)
{
	struct emu_qp *qp;

	if (progress[at].until == 0 || dev->posted < progress[at].until)
		return;
	progress[at].until = 0;
	qp = dev->qp[progress[at].number % EMU_INDEXES];
	if (qp && qp->req.cookie == progress[at].cookie)
		emu_req_hold(qp, emu_now());
}

void emu_fault_count(struct emu_qp *qp, struct emu_swqe *w)
{
	struct emu_dev *dev = qp->dev;

	for (unsigned i = 0; i < emu.setup.faults; i++) {
		const struct emu_fault *f = &emu.setup.fault[i];

		if (f->device != dev->index || f->when >= EMU_AT)
			continue;
		release(dev, i);
		if (progress[i].over || dev->posted < progress[i].next)
			continue;
		progress[i].next += f->time;
		progress[i].over = f->when == EMU_AFTER;
		happen(i, qp);
	}
	dev->posted++;
	w->fault = suffers[dev->index];
	suffers[dev->index] = -1;
	/* A send is nothing but what its peer hears of. */
	if (w->fault == EMU_LOSE_IMMEDIATE &&
	    (w->opcode == IBV_WR_SEND || w->opcode == IBV_WR_SEND_WITH_IMM))
		w->fault = EMU_LOSE_SEGMENT;
}

void emu_fault_timers(uint64_t now)
{
	for (unsigned i = 0; i < emu.setup.faults; i++) {
		const struct emu_fault *f = &emu.setup.fault[i];

		if (progress[i].end && progress[i].end <= now) {
			progress[i].end = 0;
			port_up(&emu.dev[f->device], f->lost & EMU_LOST_UP);
		} else if (progress[i].end) {
			emu_due(progress[i].end);
		}
		if (f->when < EMU_AT || progress[i].over)
			continue;
		if (progress[i].next <= now) {
			progress[i].over = f->when == EMU_AT;
			/* Not once for each time that was slept through. */
			while (progress[i].next <= now)
				progress[i].next += f->time;
			happen(i, NULL);
		}
		if (!progress[i].over)
			emu_due(progress[i].next);
	}
}
