/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoints: opening and closing. */
#include "config.h"

#include "prov/wire/verbs/verbs_ep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/params.h"
#include "prov/wire/verbs/verbs.h"
#include "prov/wire/verbs/verbs_connect.h"
#include "prov/wire/verbs/verbs_poll.h"
#include "prov/wire/verbs/verbs_reaper.h"
#include "prov/wire/verbs/verbs_rma.h"

/* How long closing waits for goodbyes to arrive. */
#define EP_CLOSE_NS UINT64_C(1000000000)

uint64_t verbs_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void verbs_ep_ring(struct verbs_ep *ep)
{
	uint64_t one = 1;

	atomic_store(&ep->has_news, true);
	if (write(ep->wake, &one, sizeof(one)) < 0)
		return; /* it is full: who sleeps is awake already */
}

void verbs_ep_news(struct verbs_ep *ep, struct verbs_link *link)
{
	if (list_empty(&link->news))
		list_push_back(&ep->news, &link->news);
	verbs_ep_ring(ep);
}

static void on_door(void *arg, const struct verbs_door_event *ev)
{
	struct verbs_ep *ep = arg;

	if (ev->kind == VERBS_CALL_HELLO)
		verbs_link_hello(ep, ev->call, ev->card);
	else if (ev->arg)
		verbs_link_event(ev->arg, ev);
}

/* ---- descriptors --------------------------------------------------------------------
 */

static int watch(const struct verbs_ep *ep, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	if (epoll_ctl(ep->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
		return errno == ENOMEM || errno == ENOSPC ? -FI_ENOMEM : -FI_EIO;
	return 0;
}

static int rail_open(struct verbs_ep *ep, uint32_t r)
{
	const struct verbs_rail *rail = &ep->dom->dev->rail[r];
	struct verbs_ep_rail *er = &ep->rail[r];
	int ret, flags;

	/* Before the card is filled in. */
	er->moves = atomic_load(&rail->moves);
	er->was_up = atomic_load_explicit(&rail->up, memory_order_relaxed);
	er->channel = ep->lib->create_comp_channel(rail->context);
	if (!er->channel)
		return errno == EMFILE ? -FI_EMFILE : -FI_ENOMEM;
	flags = fcntl(er->channel->fd, F_GETFL);
	if (flags < 0 || fcntl(er->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return -FI_EIO;
	ret = watch(ep, er->channel->fd);
	return ret ? ret : watch(ep, rail->async_fd);
}

static int fds_open(struct verbs_ep *ep)
{
	int ret = 0;

	ep->epoll = epoll_create1(EPOLL_CLOEXEC);
	ep->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (ep->epoll < 0 || ep->wake < 0)
		return -FI_EMFILE;
	ret = watch(ep, ep->wake);
	for (uint32_t r = 0; r < ep->dom->dev->rails && ret == 0; r++)
		ret = rail_open(ep, r);
	return ret ? ret : verbs_ports_open(ep);
}

static void fds_close(struct verbs_ep *ep)
{
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++)
		if (ep->rail[r].channel)
			ep->lib->destroy_comp_channel(ep->rail[r].channel);
	verbs_ports_close(ep);
	if (ep->epoll >= 0)
		close(ep->epoll);
	if (ep->wake >= 0)
		close(ep->wake);
}

/* ---- opening ------------------------------------------------------------------------
 */

static struct verbs_ep *ep_alloc(const struct wire_ep_attr *attr)
{
	struct verbs_ep *ep = calloc(1, sizeof(*ep));

	if (!ep)
		return NULL;
	ep->base.ops = &verbs_wire_ops;
	ep->events = attr->events;
	ep->arg = attr->arg;
	ep->incarnation = attr->incarnation;
	ep->pid = getpid();
	ep->epoll = ep->wake = ep->ports.epoll = -1;
	list_init(&ep->dirty);
	verbs_quick_init(ep);
	list_init(&ep->ops_blocks);
	list_init(&ep->closing);
	list_init(&ep->graves);
	list_init(&ep->timed);
	list_init(&ep->links);
	list_init(&ep->news);
	list_init(&ep->left);
	list_init(&ep->retired);
	pthread_mutex_init(&ep->mutex, NULL);
	return ep;
}

static int door_open(struct verbs_ep *ep, const struct wire_ep_attr *attr)
{
	struct verbs_door_config config = {.addr = attr->addr,
					   .any = attr->addr_any,
					   .mutex = &ep->mutex,
					   .event = on_door,
					   .arg = ep};
	struct verbs_want want;
	const char *why = NULL;
	int ret;

	verbs_want_read(&want);
	if (want.auth_key && *want.auth_key) {
		ret = verbs_auth_open(want.auth_key, &ep->auth, &why);
		if (ret) {
			FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "FI_WEFT_AUTH_KEY: %s\n",
				why ? why : fi_strerror(-ret));
			return ret;
		}
	}
	config.auth = ep->auth;
	ret = verbs_door_open(&config, &ep->door);
	if (ret)
		return ret;
	ep->base.addr = *verbs_door_addr(ep->door);
	return 0;
}

static int helper_open(struct verbs_ep *ep)
{
	const struct verbs_helper_config config = {.door = ep->door,
						   .mutex = &ep->mutex,
						   .fd = ep->ports.epoll,
						   .turn = verbs_ports_turn,
						   .arg = ep};

	return verbs_helper_start(&config, &ep->helper);
}

static void ep_free(struct verbs_ep *ep)
{
	struct list *n;

	pthread_mutex_lock(&ep->mutex);
	while ((n = list_pop_front(&ep->retired)))
		verbs_qp_destroy(ep, container_of(n, struct verbs_qp, where));
	pthread_mutex_unlock(&ep->mutex);
	verbs_reaper_stop(ep->reaper);
	for (uint32_t i = 0; i < VERBS_QP_SLOTS / VERBS_QP_CHUNK; i++)
		free(ep->slots[i]);
	verbs_ops_fini(ep);
	if (ep->dom) {
		verbs_numbers_close(ep);
		verbs_srqs_close(ep);
		verbs_cqs_close(ep);
		verbs_bufs_fini(&ep->sends);
		verbs_bufs_fini(&ep->receives);
		fds_close(ep);
		verbs_dom_put(ep->dom);
	}
	if (ep->auth)
		verbs_auth_close(ep->auth);
	pthread_mutex_destroy(&ep->mutex);
	free(ep);
}

int verbs_ep_open(const struct wire_ep_attr *attr, struct wire_ep **out)
{
	struct verbs_error error = {""};
	char text[WIRE_ADDR_TEXT_MAX];
	struct verbs_ep *ep;
	int ret;

	if (!attr->keys || !attr->events || attr->incarnation == 0)
		return -FI_EINVAL;
	ep = ep_alloc(attr);
	if (!ep)
		return -FI_ENOMEM;
	ret = verbs_dom_get(attr->keys, &ep->dom, &error);
	if (ret) {
		ep->dom = NULL;
		goto err;
	}
	ep->lib = ep->dom->dev->lib;
	ret = fds_open(ep);
	if (ret == 0)
		ret = verbs_bufs_init(&ep->sends, ep->dom);
	if (ret == 0)
		ret = verbs_bufs_init(&ep->receives, ep->dom);
	if (ret == 0)
		ret = door_open(ep, attr);
	if (ret)
		goto err;
	verbs_card_fill(ep);
	ret = helper_open(ep);
	if (ret) {
		verbs_door_close(ep->door);
		goto err;
	}
	*out = (struct wire_ep *)(void *)ep;
	return 0;

err:
	FI_WARN(&weft_provider, FI_LOG_EP_CTRL, "endpoint at %s: %s%s%s\n",
		wire_addr_text(&attr->addr, text), fi_strerror(-ret),
		error.text[0] ? "; " : "", error.text);
	ep_free(ep);
	return ret;
}

/* ---- closing ------------------------------------------------------------------------
 */

/* The next link that isn't given up yet. */
static struct verbs_link *link_left(struct verbs_ep *ep)
{
	struct verbs_link *found = NULL;

	pthread_mutex_lock(&ep->mutex);
	list_foreach (n, &ep->links) {
		struct verbs_link *link = container_of(n, struct verbs_link, member);

		if (link->state != VERBS_LINK_CLOSING) {
			found = link;
			break;
		}
	}
	pthread_mutex_unlock(&ep->mutex);
	return found;
}

void verbs_ep_close(struct wire_ep *wep)
{
	struct verbs_ep *ep = verbs_ep_of(wep);
	uint64_t end = verbs_now() + EP_CLOSE_NS;
	struct timespec nap = {.tv_nsec = 20000};
	struct verbs_link *link;

	/* A forked child has no helper thread, and nothing of this is its to end. */
	if (getpid() != ep->pid)
		return;
	while ((link = link_left(ep)))
		verbs_link_close(link);
	while (!list_empty(&ep->closing)) {
		if (verbs_poll_closing(ep, verbs_now() >= end) == 0)
			nanosleep(&nap, NULL);
	}
	verbs_helper_stop(ep->helper);
	ep->helper = NULL;
	/* Whoever called meanwhile. */
	while ((link = link_left(ep)))
		verbs_link_close(link);
	verbs_poll_closing(ep, true);
	verbs_door_close(ep->door);
	ep_free(ep);
}
