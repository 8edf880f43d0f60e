/* SPDX-License-Identifier: BSD-2-Clause */
/* Two wires as one endpoint: which of the two each call reaches. */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/joined.h"
#include "util/tap.h"

/* A wire that notes what it is asked; number 0 is near, 1 far. */
struct fake {
	struct wire_ep_base base;
	struct wire_ep_attr attr;
	int open, opened; /* endpoints that are, and that were ever */
	int busy_ports;	  /* opens that are refused because of the port */
	int fd;
	int dial; /* what it returns */
	int dials, closes, keys, mems;
	int done;     /* what progress has to do */
	int asked[8]; /* budgets of the last passes */
	int passes;
	int arm, quiesce; /* what they return */
	uint64_t look;
};

static struct fake fakes[2];
static int link_of_near, link_of_far; /* what they stand for is their address */

static int fake_open(int i, const struct wire_ep_attr *attr, struct wire_ep **ep)
{
	struct fake *f = &fakes[i];

	f->attr = *attr;
	f->opened++;
	if (f->busy_ports && f->busy_ports--) {
		return -FI_EADDRINUSE;
	}
	f->open++;
	f->base.addr = attr->addr;
	if (i == 1 && !attr->addr.in.sin_port) {
		f->base.addr.in.sin_port = htons((uint16_t)(4000 + f->opened));
	}
	if (i == 0) {
		f->base.addr.in.sin_addr.s_addr = htonl(0x0a000001);
	}
	*ep = (struct wire_ep *)(void *)f;
	return 0;
}

static int near_open(const struct wire_ep_attr *attr, struct wire_ep **ep)
{
	return fake_open(0, attr, ep);
}

static int far_open(const struct wire_ep_attr *attr, struct wire_ep **ep)
{
	return fake_open(1, attr, ep);
}

static struct fake *fake_of(struct wire_ep *ep)
{
	return (struct fake *)(void *)ep;
}

static void fake_close(struct wire_ep *ep)
{
	fake_of(ep)->open--;
}

static int fake_dial(struct wire_ep *ep, const struct wire_addr *to, void *ctx,
		     struct wire_link **link)
{
	struct fake *f = fake_of(ep);

	(void)to;
	(void)ctx;
	f->dials++;
	*link = (struct wire_link *)(void *)(f == &fakes[0] ? &link_of_near
							    : &link_of_far);
	return f->dial;
}

static int fake_mem_add(struct wire_ep *ep, void *start, size_t len, void **handle)
{
	(void)start;
	(void)len;
	*handle = &fake_of(ep)->mems;
	fake_of(ep)->mems++;
	return 0;
}

static void fake_mem_drop(struct wire_ep *ep, void *handle)
{
	(void)handle;
	fake_of(ep)->mems--;
}

static uint64_t fake_mem_name(struct wire_ep *ep, void *handle)
{
	return handle == &fake_of(ep)->mems ? 99 : 0;
}

static int fake_key_add(struct wire_ep *ep, uint64_t key, const struct mem_region *r)
{
	(void)r;
	fake_of(ep)->keys++;
	return key == 13 ? -FI_ENOMEM : 0;
}

static void fake_key_drop(struct wire_ep *ep, uint64_t key)
{
	(void)key;
	fake_of(ep)->keys--;
}

static int fake_progress(struct wire_ep *ep, int budget)
{
	struct fake *f = fake_of(ep);
	int done = f->done < budget ? f->done : budget;

	f->asked[f->passes++ % 8] = budget;
	f->done -= done;
	return done;
}

static int fake_arm(struct wire_ep *ep)
{
	return fake_of(ep)->arm;
}

static int fake_fd(struct wire_ep *ep)
{
	return fake_of(ep)->fd;
}

static uint64_t fake_look_due(struct wire_ep *ep)
{
	return fake_of(ep)->look;
}

static int fake_quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline)
{
	(void)key;
	(void)deadline;
	return fake_of(ep)->quiesce;
}

static const struct wire_ops near_ops = {
	.name = "near",
	.ep_open = near_open,
	.ep_close = fake_close,
	.dial = fake_dial,
	.progress = fake_progress,
	.arm = fake_arm,
	.fd = fake_fd,
	.look_due = fake_look_due,
	.quiesce = fake_quiesce,
};

static const struct wire_ops far_ops = {
	.name = "far",
	.remote = true,
	.ep_open = far_open,
	.ep_close = fake_close,
	.dial = fake_dial,
	.mem_add = fake_mem_add,
	.mem_drop = fake_mem_drop,
	.mem_name = fake_mem_name,
	.key_add = fake_key_add,
	.key_drop = fake_key_drop,
	.progress = fake_progress,
	.arm = fake_arm,
	.fd = fake_fd,
	.quiesce = fake_quiesce,
};

static const struct wire_ops *const ops = &joined_wire_ops;

static int open_it(uint16_t port, struct wire_ep **ep)
{
	struct wire_ep_attr attr = {.near = &near_ops, .far = &far_ops, .addr_any = true};

	attr.addr.in.sin_family = AF_INET;
	attr.addr.in.sin_port = htons(port);
	return ops->ep_open(&attr, ep);
}

static void fakes_init(void)
{
	memset(fakes, 0, sizeof(fakes));
	fakes[0].fd = eventfd(0, EFD_CLOEXEC);
	fakes[1].fd = eventfd(0, EFD_CLOEXEC);
	fakes[0].look = 500;
}

static void fakes_fini(void)
{
	close(fakes[0].fd);
	close(fakes[1].fd);
}

static void test_open(void)
{
	struct wire_ep_attr none = {.near = &near_ops};
	struct wire_ep *ep;

	fakes_init();
	fakes[0].busy_ports = 2;
	tap_is_int(open_it(0, &ep), 0, "any port, two of which are taken nearby");
	tap_is_int(ntohs(wire_ep_base(ep)->addr.in.sin_port), 4003, "the third");
	tap_ok(fakes[0].attr.port_held && !fakes[1].attr.port_held &&
		       fakes[0].attr.addr_any,
	       "which the far wire listens at");
	tap_is_int(ntohl(wire_ep_base(ep)->addr.in.sin_addr.s_addr), 0x0a000001,
		   "with the near one's host");
	tap_ok(fakes[0].open == 1 && fakes[1].open == 1, "nothing else is open");
	ops->ep_close(ep);
	tap_ok(fakes[0].open == 0 && fakes[1].open == 0, "both close");
	fakes[0].busy_ports = 1;
	tap_is_int(open_it(77, &ep), -FI_EADDRINUSE, "just that port, which is taken");
	fakes[1].busy_ports = 1000;
	tap_is_int(open_it(0, &ep), -FI_EADDRINUSE, "it doesn't try for ever");
	tap_ok(fakes[0].open == 0 && fakes[1].open == 0, "nothing is left open");
	tap_is_int(ops->ep_open(&none, &ep), -FI_EINVAL, "two are needed");
	fakes_fini();
}

static void test_dial(void)
{
	struct wire_addr to = {.sa.sa_family = AF_INET};
	struct wire_link *link;
	struct wire_ep *ep;

	fakes_init();
	open_it(0, &ep);
	ops->dial(ep, &to, NULL, &link);
	tap_ok((void *)link == &link_of_near && fakes[1].dials == 0, "a peer nearby");
	fakes[0].dial = -FI_EHOSTUNREACH;
	ops->dial(ep, &to, NULL, &link);
	tap_ok((void *)link == &link_of_far, "one elsewhere");
	fakes[0].dial = -FI_ECONNREFUSED;
	tap_is_int(ops->dial(ep, &to, NULL, &link), -FI_ECONNREFUSED,
		   "one nearby that isn't there yet is not looked for elsewhere");
	tap_is_int(fakes[1].dials, 1, "really not");
	ops->ep_close(ep);
	fakes_fini();
}

static void test_memory(void)
{
	struct wire_ep *ep;
	void *handle;

	fakes_init();
	open_it(0, &ep);
	ops->mem_add(ep, NULL, 4096, &handle);
	tap_ok(fakes[1].mems == 1 && ops->mem_name(ep, handle) == 99, "registered afar");
	ops->mem_drop(ep, handle);
	tap_is_int(fakes[1].mems, 0, "and dropped");
	tap_is_int(ops->key_add(ep, 7, NULL), 0, "a key");
	tap_is_int(ops->key_add(ep, 13, NULL), -FI_ENOMEM, "one that it can't have");
	ops->key_drop(ep, 7);
	tap_is_int(fakes[1].keys, 1, "dropped");
	fakes[0].quiesce = -FI_EBUSY;
	tap_is_int(ops->quiesce(ep, 7, 0), -FI_EBUSY, "a peer nearby is at it");
	fakes[0].quiesce = 0;
	fakes[1].quiesce = -FI_EBUSY;
	tap_is_int(ops->quiesce(ep, 7, 0), -FI_EBUSY, "or one elsewhere");
	fakes[1].quiesce = 0;
	tap_is_int(ops->quiesce(ep, 7, 0), 0, "or nobody");
	ops->ep_close(ep);
	fakes_fini();
}

static void test_progress(void)
{
	struct wire_ep *ep;
	int total = 0;

	fakes_init();
	open_it(0, &ep);
	fakes[0].done = fakes[1].done = 1000;
	for (int i = 0; i < 4; i++) {
		int done = ops->progress(ep, 64);

		tap_ok(done <= 64, "no more than there is room for: %d", done);
		total += done;
	}
	tap_ok(total == 256 && fakes[0].done == 1000 - 128 && fakes[1].done == 1000 - 128,
	       "both get their turn when both are busy");
	fakes[0].done = 0;
	fakes[1].done = 10;
	total = ops->progress(ep, 64) + ops->progress(ep, 64);
	tap_is_int(total, 10, "one alone");
	tap_is_int(ops->progress(ep, 64), 0, "nothing");
	ops->ep_close(ep);
	fakes_fini();
}

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void test_sleep(void)
{
	uint64_t one = 1;
	struct wire_ep *ep;
	int fd;

	fakes_init();
	open_it(0, &ep);
	fd = ops->fd(ep);
	tap_ok(fd >= 0 && ops->fd(ep) == fd && !readable(fd), "one descriptor");
	for (int i = 0; i < 2; i++) {
		tap_ok(write(fakes[i].fd, &one, 8) == 8 && readable(fd),
		       "readable when %s is", i ? "far" : "near");
		tap_ok(read(fakes[i].fd, &one, 8) == 8 && !readable(fd), "and no longer");
		tap_is_int(ops->arm(ep), 0, "both are armed");
		fakes[i].arm = -FI_EAGAIN;
		tap_is_int(ops->arm(ep), -FI_EAGAIN, "one has work to do");
		fakes[i].arm = 0;
	}
	tap_is_int((int64_t)ops->look_due(ep), 500, "due when the one that looks is");
	ops->ep_close(ep);
	fakes_fini();
}

int main(void)
{
	test_open();
	test_dial();
	test_memory();
	test_progress();
	test_sleep();
	return tap_done();
}
