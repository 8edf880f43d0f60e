/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint rules, with two endpoints in one process: what may be done when, what is
 * refused with which error, options, names, completions by flags, close. */
#include "config.h"

#include <pthread.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "prov/fi/ep_int.h"
#include "prov/proto/ep.h"
#include "prov/wire/shm/shm_ep.h"
#include "util/tap.h"

struct end {
	struct fid_ep *ep;
	struct fid_cq *cq;
	fi_addr_t addr; /* of itself, in the shared vector */
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;

static void must(int ret, const char *what)
{
	if (ret) {
		tap_bail("%s: %s", what, fi_strerror(-ret));
	}
}

static void setup(enum fi_progress progress)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo();
	int ret;

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_MULTI_RECV;
	hints->fabric_attr->prov_name = strdup("weft");
	hints->domain_attr->data_progress = progress;
	hints->domain_attr->control_progress = progress;
	ret = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info);
	must(ret, "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_av_open(domain, &attr, &av, NULL), "fi_av_open");
}

static void teardown(void)
{
	tap_is_int(fi_close(&av->fid), 0, "close av");
	tap_is_int(fi_close(&domain->fid), 0, "close domain");
	tap_is_int(fi_close(&fabric->fid), 0, "close fabric");
	fi_freeinfo(info);
}

static void end_open(struct end *e, uint64_t cq_flags)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED,
				  .wait_obj = FI_WAIT_UNSPEC};
	char name[64];
	size_t len = sizeof(name);

	must(fi_cq_open(domain, &attr, &e->cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &e->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(e->ep, &e->cq->fid, cq_flags), "bind cq");
	must(fi_ep_bind(e->ep, &av->fid, 0), "bind av");
	must(fi_enable(e->ep), "fi_enable");
	must(fi_getname(&e->ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(av, name, 1, &e->addr, 0, NULL) != 1) {
		tap_bail("fi_av_insert");
	}
}

static void end_close(struct end *e)
{
	must(fi_close(&e->ep->fid), "close ep");
	must(fi_close(&e->cq->fid), "close cq");
}

#define LONG_S 60 /* more than anything needs, on whatever machine */

/* The next completion of e while both are driven; 0 after a long time without. err of an
 * error entry in *err. */
static int next(struct end *e, struct end *other, struct fi_cq_tagged_entry *entry,
		int *err)
{
	struct fi_cq_err_entry error = {0};
	struct timespec t0, t;

	*err = 0;
	clock_gettime(CLOCK_MONOTONIC, &t0);
	do {
		ssize_t ret = fi_cq_read(e->cq, entry, 1);

		if (ret == 1) {
			return 1;
		}
		if (ret == -FI_EAVAIL && fi_cq_readerr(e->cq, &error, 0) == 1) {
			*err = error.err;
			entry->op_context = error.op_context;
			entry->flags = error.flags;
			return 1;
		}
		if (other) {
			fi_cq_read(other->cq, NULL, 0);
		}
		clock_gettime(CLOCK_MONOTONIC, &t);
	} while (t.tv_sec - t0.tv_sec < LONG_S);
	return 0;
}

static void test_states(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fid_cq *cq;
	struct fid_ep *ep;
	char buf[8] = {0};

	must(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	tap_is_int(fi_send(ep, buf, 8, NULL, 0, NULL), -FI_EOPBADSTATE,
		   "send before enable");
	tap_is_int(fi_recv(ep, buf, 8, NULL, 0, NULL), -FI_EOPBADSTATE,
		   "recv before enable");
	tap_is_int(fi_write(ep, buf, 8, NULL, 0, 0, 0, NULL), -FI_EOPBADSTATE,
		   "write before enable");
	tap_is_int(fi_enable(ep), -FI_ENOAV, "enable without av");
	must(fi_ep_bind(ep, &av->fid, 0), "bind av");
	tap_is_int(fi_ep_bind(ep, &av->fid, 0), -FI_EINVAL, "a second av");
	tap_is_int(fi_enable(ep), -FI_ENOCQ, "enable without cq");
	tap_is_int(fi_ep_bind(ep, &cq->fid, 0), -FI_EBADFLAGS, "cq without direction");
	must(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT), "bind cq");
	tap_is_int(fi_enable(ep), -FI_ENOCQ, "enable without receive cq");
	must(fi_ep_bind(ep, &cq->fid, FI_RECV), "bind cq");
	tap_is_int(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EINVAL, "a second receive cq");
	tap_is_int(fi_enable(ep), 0, "enable");
	tap_is_int(fi_enable(ep), 0, "enable again");
	tap_is_int(fi_ep_bind(ep, &cq->fid, FI_RECV), -FI_EOPBADSTATE,
		   "bind after enable");
	tap_is_int(fi_close(&cq->fid), -FI_EBUSY, "close of a cq in use");
	tap_is_int(fi_close(&av->fid), -FI_EBUSY, "close of an av in use");
	tap_is_int(fi_send(ep, buf, 8, NULL, 12345, NULL), -FI_EINVAL, "unknown address");
	must(fi_close(&ep->fid), "close ep");
	must(fi_close(&cq->fid), "close cq");
}

static void test_options(void)
{
	size_t size = 333, len = sizeof(size);
	uint64_t flags;
	struct end e;
	struct fid_ep *alias = NULL;

	end_open(&e, FI_TRANSMIT | FI_RECV);
	tap_is_int(
		fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, len),
		0, "set min_multi_recv after enable");
	size = 0;
	tap_is_int(fi_getopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size,
			     &len),
		   0, "get it");
	tap_is_int((int64_t)size, 333, "as it was set");
	tap_is_int(fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, 9999, &size, len),
		   -FI_ENOPROTOOPT, "unknown option");
	tap_is_int(
		fi_setopt(&e.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &size, 1),
		-FI_EINVAL, "wrong length");
	flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
	tap_is_int(fi_control(&e.ep->fid, FI_SETOPSFLAG, &flags), 0, "set op_flags");
	flags = FI_TRANSMIT;
	tap_is_int(fi_control(&e.ep->fid, FI_GETOPSFLAG, &flags), 0, "get op_flags");
	tap_is_int((int64_t)flags, FI_DELIVERY_COMPLETE, "as they were set");
	flags = FI_TRANSMIT | FI_RECV;
	tap_is_int(fi_control(&e.ep->fid, FI_GETOPSFLAG, &flags), -FI_EINVAL,
		   "both sides");
	tap_is_int(fi_ep_alias(e.ep, &alias, FI_TRANSMIT), 0, "an alias");
	tap_is_int(fi_close(&e.ep->fid), -FI_EBUSY, "keeps the endpoint open");
	tap_is_int(fi_close(&alias->fid), 0, "and closes");
	tap_ok(e.ep->ops->tx_size_left(e.ep) >= 64, "tx_size_left");
	tap_ok(e.ep->ops->rx_size_left(e.ep) >= 64, "rx_size_left");
	tap_is_int(fi_cancel(&e.ep->fid, &size), 0, "cancel of nothing");
	end_close(&e);
}

static void test_names(void)
{
	char name[64], again[64];
	size_t len = 4, again_len = sizeof(again);
	struct fid_ep *ep;

	must(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
	tap_is_int(fi_getname(&ep->fid, name, &len), -FI_ETOOSMALL, "name: short buffer");
	tap_ok(len > 4 && len <= sizeof(name), "the length that it needs");
	must(fi_getname(&ep->fid, name, &len), "fi_getname");
	must(fi_getname(&ep->fid, again, &again_len), "fi_getname");
	tap_ok(len == again_len && memcmp(name, again, len) == 0,
	       "the name before enable stays");
	tap_is_int(fi_setname(&ep->fid, name, len), -FI_EOPBADSTATE,
		   "no other name once it is known");
	must(fi_close(&ep->fid), "close ep");
}

/* Bound to a shared receive context, with nothing to hear of receives by: what is sent to
 * an endpoint that doesn't receive takes no receive of the context. */
static void test_deaf(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_info *only_send = fi_dupinfo(info);
	struct fi_cq_tagged_entry entry;
	struct end e, deaf;
	struct fid_ep *srx;
	char name[64], buf[8] = {0};
	size_t len = sizeof(name);
	bool quiet = true;
	ssize_t left;
	int err;

	only_send->caps = FI_MSG | FI_SEND;
	must(fi_srx_context(domain, NULL, &srx, NULL), "fi_srx_context");
	must(fi_cq_open(domain, &attr, &deaf.cq, NULL), "fi_cq_open");
	must(fi_endpoint(domain, only_send, &deaf.ep, NULL), "fi_endpoint");
	must(fi_ep_bind(deaf.ep, &deaf.cq->fid, FI_TRANSMIT), "bind cq");
	must(fi_ep_bind(deaf.ep, &av->fid, 0), "bind av");
	must(fi_ep_bind(deaf.ep, &srx->fid, 0), "bind srx");
	must(fi_enable(deaf.ep), "fi_enable");
	must(fi_getname(&deaf.ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(av, name, 1, &deaf.addr, 0, NULL) != 1)
		tap_bail("fi_av_insert");
	end_open(&e, FI_TRANSMIT | FI_RECV);
	tap_is_int(fi_recv(srx, buf, 8, NULL, FI_ADDR_UNSPEC, buf), 0,
		   "a shared receive");
	left = srx->ops->rx_size_left(srx);
	tap_is_int(fi_send(e.ep, buf, 8, NULL, deaf.addr, NULL), 0,
		   "a message to an endpoint that doesn't receive");
	tap_ok(next(&e, &deaf, &entry, &err) && !err, "it leaves");
	for (int i = 0; i < 100; i++)
		quiet = quiet && fi_cq_read(deaf.cq, &entry, 1) == -FI_EAGAIN;
	tap_ok(quiet && srx->ops->rx_size_left(srx) == left, "and takes no receive");
	end_close(&e);
	end_close(&deaf);
	must(fi_close(&srx->fid), "close srx");
	fi_freeinfo(only_send);
}

/* Its receive context 0, which answers at its address, goes before there is one. */
static void test_homeless(void)
{
	struct fi_info *two = fi_dupinfo(info);
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_ep *sep, *rx, *tx;
	struct fid_cq *cq;
	char name[64];
	size_t len = sizeof(name);

	two->ep_attr->tx_ctx_cnt = two->ep_attr->rx_ctx_cnt = 2;
	must(fi_cq_open(domain, &attr, &cq, NULL), "fi_cq_open");
	must(fi_scalable_ep(domain, two, &sep, NULL), "fi_scalable_ep");
	must(fi_scalable_ep_bind(sep, &av->fid, 0), "bind av");
	must(fi_rx_context(sep, 0, NULL, &rx, NULL), "fi_rx_context");
	must(fi_close(&rx->fid), "close rx");
	tap_is_int(fi_getname(&sep->fid, name, &len), -FI_EOPBADSTATE,
		   "a scalable endpoint without its first context has no name");
	must(fi_tx_context(sep, 1, NULL, &tx, NULL), "fi_tx_context");
	must(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT), "bind cq");
	tap_is_int(fi_enable(tx), -FI_EOPBADSTATE, "nor have its others a place");
	must(fi_rx_context(sep, 0, NULL, &rx, NULL), "fi_rx_context");
	tap_is_int(fi_enable(tx), 0, "until it is there again");
	tap_is_int(fi_getname(&sep->fid, name, &len), 0, "then there is a name");
	must(fi_close(&tx->fid), "close tx");
	must(fi_close(&rx->fid), "close rx");
	must(fi_close(&sep->fid), "close sep");
	must(fi_close(&cq->fid), "close cq");
	fi_freeinfo(two);
}

/* An alias of a shared receive context takes no more than the context: what it was bound
 * to would never be let go. */
static void test_srx_alias(void)
{
	struct fid_ep *srx, *alias = NULL;

	must(fi_srx_context(domain, NULL, &srx, NULL), "fi_srx_context");
	must(fi_ep_alias(srx, &alias, FI_RECV), "fi_ep_alias");
	tap_is_int(fi_ep_bind(srx, &av->fid, 0), -FI_ENOSYS,
		   "nothing is bound to a shared receive context");
	tap_is_int(fi_ep_bind(alias, &av->fid, 0), -FI_ENOSYS, "nor by its alias");
	must(fi_close(&alias->fid), "close alias");
	must(fi_close(&srx->fid), "close srx");
}

/* What hints may ask for, contexts may as well. */
static void test_context_sizes(void)
{
	struct fi_info *big = fi_dupinfo(info);
	struct fid_ep *sep, *srx, *tx, *rx;
	size_t size = 0, len = sizeof(size);

	big->ep_attr->tx_ctx_cnt = big->ep_attr->rx_ctx_cnt = 2;
	big->tx_attr->size = big->rx_attr->size = 4 * WFI_RX_SIZE;
	must(fi_scalable_ep(domain, big, &sep, NULL), "fi_scalable_ep");
	tap_is_int(fi_tx_context(sep, 1, big->tx_attr, &tx, NULL), 0,
		   "a transmit context as large as hints may ask for");
	tap_is_int(fi_rx_context(sep, 1, big->rx_attr, &rx, NULL), 0, "receive context");
	tap_is_int(fi_srx_context(domain, big->rx_attr, &srx, NULL), 0, "shared");
	must(fi_getopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_RX_SIZE, &size, &len),
	     "fi_getopt");
	tap_is_int((int64_t)size, 4 * WFI_RX_SIZE, "and it says so");
	must(fi_close(&srx->fid), "close srx");
	must(fi_close(&tx->fid), "close tx");
	must(fi_close(&rx->fid), "close rx");
	big->tx_attr->size = big->rx_attr->size = WFI_SIZE_MAX + 1;
	tap_is_int(fi_tx_context(sep, 1, big->tx_attr, &tx, NULL), -FI_EINVAL, "no more");
	tap_is_int(fi_rx_context(sep, 1, big->rx_attr, &rx, NULL), -FI_EINVAL, "no more");
	tap_is_int(fi_srx_context(domain, big->rx_attr, &srx, NULL), -FI_EINVAL,
		   "no more");
	must(fi_close(&sep->fid), "close sep");
	fi_freeinfo(big);
}

/* Selective completion: only FI_COMPLETION and errors are reported, and flags given with
 * a call replace the endpoint's. */
static void test_selective(void)
{
	struct fi_cq_tagged_entry entry;
	char out[64] = "selective", in[64];
	struct iovec iov = {out, 10};
	struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .tag = 3};
	struct end a, b;
	int err;

	end_open(&a, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION);
	end_open(&b, FI_TRANSMIT | FI_RECV);
	must(fi_trecv(b.ep, in, 64, NULL, a.addr, 3, 0, &b), "fi_trecv");
	must(fi_tsend(a.ep, out, 10, NULL, b.addr, 3, &a), "fi_tsend");
	tap_ok(next(&b, &a, &entry, &err) && !err && entry.op_context == &b &&
		       entry.len == 10 && entry.tag == 3 &&
		       entry.flags == (FI_TAGGED | FI_RECV) && !strcmp(in, out),
	       "received");
	tap_is_int(fi_cq_read(a.cq, &entry, 1), -FI_EAGAIN,
		   "silent without FI_COMPLETION");
	must(fi_trecv(b.ep, in, 64, NULL, FI_ADDR_UNSPEC, 3, 0, &b), "fi_trecv");
	msg.addr = b.addr;
	msg.context = &msg;
	must(fi_tsendmsg(a.ep, &msg, FI_COMPLETION | FI_INJECT | FI_DELIVERY_COMPLETE),
	     "fi_tsendmsg");
	strcpy(out, "scribbled");
	tap_ok(next(&a, &b, &entry, &err) && !err && entry.op_context == &msg &&
		       entry.flags == (FI_TAGGED | FI_SEND),
	       "reported with FI_COMPLETION");
	tap_ok(next(&b, &a, &entry, &err) && !err && !strcmp(in, "selective"),
	       "injected: the bytes of the call");
	tap_is_int(fi_trecv(b.ep, in, SIZE_MAX - 7, NULL, FI_ADDR_UNSPEC, 3, 0, &b),
		   -FI_EINVAL, "a receive longer than memory");
	tap_is_int(fi_recv(b.ep, in, SIZE_MAX - 7, NULL, FI_ADDR_UNSPEC, &b), -FI_EINVAL,
		   "and untagged");
	must(fi_trecv(b.ep, in, 4, NULL, a.addr, 3, 0, &b), "fi_trecv");
	must(fi_tinject(a.ep, "123456789", 9, b.addr, 3), "fi_tinject");
	tap_ok(next(&b, &a, &entry, &err) && err == FI_ETRUNC, "truncation is an error");
	tap_is_int(fi_tinject(a.ep, out, 1 << 20, b.addr, 3), -FI_EINVAL,
		   "inject of more than inject_size");
	end_close(&a);
	end_close(&b);
}

/* Whether the system lets a process read memory as others' is read. */
static bool attach_is_allowed(void)
{
	char word = 0, copy;
	const struct iovec here = {&copy, 1}, there = {&word, 1};

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

/* Nobody reads, one thread sleeps: bulk work that a post leaves must still go on. */
static void *sleeper(void *arg)
{
	struct end *e = arg;
	struct fi_cq_tagged_entry entry;

	return (void *)(intptr_t)fi_cq_sread(e->cq, &entry, 1, NULL, LONG_S * 1000);
}

static void test_sleeper(void)
{
	size_t len = 64 << 20;
	char *out = calloc(1, len), *in = calloc(1, len);
	struct timespec pause = {.tv_nsec = 200000000};
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	struct end a, b;
	void *ret;
	int err;

	if (!attach_is_allowed()) {
		tap_skip(4, "attach is refused here: a sender has to make calls");
		free(in);
		free(out);
		return;
	}
	end_open(&a, FI_TRANSMIT | FI_RECV);
	end_open(&b, FI_TRANSMIT | FI_RECV);
	memset(out, 7, len);
	/* The link is up before, so that the announcement leaves with the post: nobody
	 * makes progress for the sender afterwards. */
	must(fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), "fi_trecv");
	must(fi_tsend(a.ep, out, 8, NULL, b.addr, 2, NULL), "fi_tsend");
	tap_ok(next(&a, &b, &entry, &err) && !err && next(&b, &a, &entry, &err) && !err,
	       "a first message");
	must(fi_tsend(a.ep, out, len, NULL, b.addr, 1, NULL), "fi_tsend");
	for (int i = 0; i < 1000; i++) {
		fi_cq_read(b.cq, NULL, 0);
	}
	pthread_create(&thread, NULL, sleeper, &b);
	nanosleep(&pause, NULL);
	must(fi_trecv(b.ep, in, len, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), "fi_trecv");
	pthread_join(thread, &ret);
	tap_is_int((intptr_t)ret, 1, "a sleeping reader goes on with what a post left");
	tap_ok(!memcmp(in, out, len), "64 MiB are right");
	tap_ok(next(&a, &b, &entry, &err) && !err, "and the sender is told");
	end_close(&a);
	end_close(&b);
	free(in);
	free(out);
}

/* Somebody writes all over the hub of a sleeper while a message comes for it. */
static void *wiper(void *arg)
{
	struct end *e = arg;
	struct wire_ep *wep = wfi_ep_of_ep(e->ep)->proto->wep;
	struct shm_hub_mem *hub = ((struct shm_ep *)(void *)wep)->hub.mem;
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (now = begin; now.tv_sec * 1000 + now.tv_nsec / 1000000 <
			  begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 300;
	     clock_gettime(CLOCK_MONOTONIC, &now)) {
		atomic_store(&hub->sleeping, 0);
		atomic_store(&hub->summary, 0);
		atomic_store(&hub->words[0], 0);
	}
	return NULL;
}

static void test_wiped(void)
{
	struct timespec pause = {.tv_nsec = 150000000};
	struct fi_cq_tagged_entry entry;
	char word[8] = "through", in[8] = "";
	pthread_t asleep, wiping;
	struct end a, b;
	void *ret;
	int err;

	end_open(&a, FI_TRANSMIT | FI_RECV);
	end_open(&b, FI_TRANSMIT | FI_RECV);
	for (int i = 0; i < 2; i++) {
		must(fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL), "fi_trecv");
		if (i == 0) {
			must(fi_tinject(a.ep, word, 8, b.addr, 1), "fi_tinject");
			tap_ok(next(&b, &a, &entry, &err) && !err, "a first message");
			memset(in, 0, 8);
		}
	}
	pthread_create(&asleep, NULL, sleeper, &b);
	nanosleep(&pause, NULL);
	pthread_create(&wiping, NULL, wiper, &b);
	nanosleep(&pause, NULL);
	must(fi_tinject(a.ep, word, 8, b.addr, 1), "fi_tinject");
	pthread_join(wiping, NULL);
	pthread_join(asleep, &ret);
	tap_is_int((intptr_t)ret, 1, "a hub that is wiped doesn't hide a message");
	tap_is_str(in, word, "which is the right one");
	end_close(&a);
	end_close(&b);
}

/* Automatic progress: the target makes no call, and both ends sleep. */
static void test_auto(void)
{
	struct fi_cq_tagged_entry entry;
	char out[3][100000], in[3][100000];
	struct end a, b;
	bool good = true;

	end_open(&a, FI_TRANSMIT | FI_RECV);
	end_open(&b, FI_TRANSMIT | FI_RECV);
	for (int i = 0; i < 3; i++) {
		memset(out[i], i + 1, sizeof(out[i]));
		must(fi_trecv(b.ep, in[i], sizeof(in[i]), NULL, a.addr, i, 0, NULL),
		     "fi_trecv");
	}
	for (int i = 0; i < 3; i++) {
		must(fi_tsend(a.ep, out[i], sizeof(out[i]), NULL, b.addr, i, NULL),
		     "fi_tsend");
		good &= fi_cq_sread(a.cq, &entry, 1, NULL, LONG_S * 1000) == 1;
	}
	tap_ok(good, "automatic: sends end while the receiver makes no call");
	for (int i = 0; i < 3; i++) {
		good &= fi_cq_sread(b.cq, &entry, 1, NULL, LONG_S * 1000) == 1;
	}
	tap_ok(good && !memcmp(in, out, sizeof(in)), "and it has the messages");
	end_close(&a);
	end_close(&b);
}

int main(void)
{
	setup(FI_PROGRESS_MANUAL);
	test_states();
	test_options();
	test_names();
	test_deaf();
	test_homeless();
	test_srx_alias();
	test_context_sizes();
	test_selective();
	test_sleeper();
	test_wiped();
	teardown();
	setup(FI_PROGRESS_AUTO);
	test_auto();
	teardown();
	return tap_done();
}
