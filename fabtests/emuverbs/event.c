/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events, and the queues of them and of completion events. The descriptor
 * counts what is in the list, with the lock held. */
#include "config.h"

#include "fabtests/emuverbs/event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabtests/emuverbs/host.h"

bool emu_queue_open(struct emu_queue *q)
{
	list_init(&q->events);
	q->generation = emu.generation;
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	return q->fd >= 0;
}

static void queue_remove(struct emu_queue *q, struct emu_event *e)
{
	eventfd_t one;

	if (q->generation == emu.generation)
		eventfd_read(q->fd, &one);
	list_remove(&e->node);
	free(e);
}

void emu_queue_close(struct emu_queue *q)
{
	while (!list_empty(&q->events))
		queue_remove(q, container_of(q->events.next, struct emu_event, node));
	close(q->fd);
}

void emu_queue_put(struct emu_queue *q, const struct emu_event *event)
{
	struct emu_event *e = malloc(sizeof(*e));

	if (!e)
		emu_host_fail("out of memory");
	*e = *event;
	list_push_back(&q->events, &e->node);
	if (q->generation == emu.generation)
		eventfd_write(q->fd, 1);
}

bool emu_queue_take(struct emu_queue *q, struct emu_event *event)
{
	struct pollfd p = {.fd = q->fd, .events = POLLIN};

	while (1) {
		emu_lock();
		if (!list_empty(&q->events)) {
			struct emu_event *e =
				container_of(q->events.next, struct emu_event, node);

			*event = *e;
			queue_remove(q, e);
			return true;
		}
		emu_unlock();
		if (fcntl(q->fd, F_GETFL) & O_NONBLOCK) {
			errno = EAGAIN;
			return false;
		}
		if (poll(&p, 1, -1) < 0)
			return false;
	}
}

static bool event_of(const struct emu_event *e, const void *element)
{
	if (e->cq)
		return e->cq == element;
	switch (e->async.event_type) {
	case IBV_EVENT_PORT_ACTIVE:
	case IBV_EVENT_PORT_ERR:
	case IBV_EVENT_DEVICE_FATAL:
		return false;
	default:
		/* The members of the union are pointers all. */
		return e->async.element.qp == element;
	}
}

void emu_queue_drop(struct emu_queue *q, const void *element)
{
	list_foreach_safe (pos, tmp, &q->events) {
		struct emu_event *e = container_of(pos, struct emu_event, node);

		if (event_of(e, element))
			queue_remove(q, e);
	}
}

void emu_event_port(struct emu_dev *dev, enum ibv_event_type type)
{
	struct emu_event e = {
		.async = {.event_type = type, .element.port_num = (int)dev->set->port}};

	list_foreach (pos, &dev->contexts) {
		emu_queue_put(&container_of(pos, struct emu_context, node)->async, &e);
	}
}

static void put(struct ibv_context *context, struct ibv_async_event async)
{
	struct emu_event e = {.async = async};

	emu_queue_put(&emu_context_of(context)->async, &e);
}

void emu_event_qp(struct emu_qp *qp, enum ibv_event_type type)
{
	struct ibv_qp *ibv = emu_qp_ibv(qp);

	put(ibv->context,
	    (struct ibv_async_event){.event_type = type, .element.qp = ibv});
}

void emu_event_cq(struct emu_cq *cq)
{
	put(cq->ibv.context, (struct ibv_async_event){.event_type = IBV_EVENT_CQ_ERR,
						      .element.cq = &cq->ibv});
}

void emu_event_srq(struct emu_srq *srq, enum ibv_event_type type)
{
	put(srq->ibv.context,
	    (struct ibv_async_event){.event_type = type, .element.srq = &srq->ibv});
}

/* How many of what it is about were handed out: destroying waits until all were
 * acknowledged. */
static unsigned *handed_out(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &emu_cq_of(e->element.cq)->async_events;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return &emu_qp_of(e->element.qp)->events;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &emu_srq_of(e->element.srq)->events;
	default:
		return NULL;
	}
}

static uint32_t *acknowledged(const struct ibv_async_event *e)
{
	switch (e->event_type) {
	case IBV_EVENT_CQ_ERR:
		return &e->element.cq->async_events_completed;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return &e->element.srq->events_completed;
	default:
		return &e->element.qp->events_completed;
	}
}

EMU_API int ibv_get_async_event(struct ibv_context *context,
				struct ibv_async_event *event)
{
	struct emu_event e;
	unsigned *count;

	if (!emu_queue_take(&emu_context_of(context)->async, &e))
		return -1;
	*event = e.async;
	count = handed_out(event);
	if (count)
		(*count)++;
	emu_unlock();
	return 0;
}

EMU_API void ibv_ack_async_event(struct ibv_async_event *event)
{
	emu_lock();
	if (handed_out(event)) {
		(*acknowledged(event))++;
		emu_changed();
	}
	emu_unlock();
}
