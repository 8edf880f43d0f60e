/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of GPUs (FI_HMEM): messages, RMA and atomics between two processes with it on
 * either side or both, over each wire; and bad input. On the stand-in the host can't
 * touch that memory, so that whatever forgets whose it is dies. HMEM_WIRES: over which
 * wires.
 */
#include "config.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "prov/fi/tests/hmem_pair.h"
#include "util/tap.h"
#include "util/tap_fork.h"
#include "weft/weft_fi.h"

#define LARGE (((size_t)3 << 20) + 5)

static const char *kind(bool device)
{
	return device ? "device" : "host";
}

static uint64_t counted(struct pair *p, const char *name)
{
	struct weft_fi_count_ops *ops;
	struct weft_fi_count counts[64];
	size_t count = 64;

	pair_must(p,
		  fi_open_ops(&p->domain->fid, WEFT_FI_COUNT_OPS, 0, (void **)&ops, NULL),
		  "fi_open_ops");
	pair_must(p, ops->read(p->domain, counts, &count), "counts");
	for (size_t i = 0; i < count && i < 64; i++) {
		if (strcmp(counts[i].name, name) == 0)
			return counts[i].value;
	}
	return UINT64_MAX;
}

/* ---- messages */

/* From rank 0 to rank 1. */
static bool message(struct pair *p, struct buffer *b, size_t len, uint32_t seed,
		    bool unexpected)
{
	bool good = true;

	if (p->rank == 0) {
		buffer_fill(p, b, 3, len, seed);
	} else {
		buffer_fill(p, b, 0, b->len, ~seed);
		if (!unexpected)
			pair_must(p,
				  fi_trecv(p->ep, b->at + 3, len, b->desc, p->peer, 7, 0,
					   b),
				  "fi_trecv");
	}
	pair_both(p, true);
	if (p->rank == 0) {
		pair_must(p, fi_tsend(p->ep, b->at + 3, len, b->desc, p->peer, 7, b),
			  "fi_tsend");
		if (unexpected)
			pair_both(p, true);
		good = pair_wait(p) == 0;
	} else {
		if (unexpected) {
			pair_both(p, true);
			pair_must(p,
				  fi_trecv(p->ep, b->at + 3, len, b->desc, p->peer, 7, 0,
					   b),
				  "fi_trecv");
		}
		good = pair_wait(p) == 0 && buffer_has(p, b, 3, len, seed);
	}
	return pair_both(p, good);
}

static void messages(struct pair *p)
{
	static const size_t sizes[] = {1, 300, 2048, 6000, 70000, LARGE};

	for (int kinds = 1; kinds < 4; kinds++) {
		bool device = p->rank == 0 ? kinds & 1 : kinds & 2;
		struct buffer b;

		buffer_get(p, &b, device, LARGE + 8, 0);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			for (int late = 0; late < 2; late++) {
				bool good = message(p, &b, sizes[i],
						    (uint32_t)(kinds * 64 + i * 2) + late,
						    late);

				pair_say(p, good, "%zu bytes, %s to %s%s", sizes[i],
					 kind(kinds & 1), kind(kinds & 2),
					 late ? ", unexpected" : "");
			}
		}
		buffer_put(p, &b);
	}
}

/* One piece of the host, one of the device. */
static void mixed(struct pair *p)
{
	static const size_t sizes[] = {700, 100000};
	struct buffer host, dev;

	buffer_get(p, &host, false, 100000, 0);
	buffer_get(p, &dev, true, 100000, 0);
	for (size_t i = 0; i < 2; i++) {
		struct iovec iov[2] = {{host.at, sizes[i]}, {dev.at, sizes[i]}};
		void *desc[2] = {host.desc, dev.desc};
		bool good;

		for (int k = 0; k < 2; k++)
			buffer_fill(p, k ? &dev : &host, 0, sizes[i],
				    (uint32_t)(p->rank ? 90 : 10 + k));
		if (p->rank == 1)
			pair_must(p, fi_recvv(p->ep, iov, desc, 2, p->peer, NULL),
				  "recvv");
		pair_both(p, true);
		if (p->rank == 0)
			pair_must(p, fi_sendv(p->ep, iov, desc, 2, p->peer, NULL),
				  "sendv");
		good = pair_wait(p) == 0 && buffer_has(p, &host, 0, sizes[i], 10) &&
		       buffer_has(p, &dev, 0, sizes[i], 11);
		good = pair_both(p, good);
		pair_say(p, good, "two pieces of %zu bytes, of host and device",
			 sizes[i]);
	}
	buffer_put(p, &host);
	buffer_put(p, &dev);
}

static void inject(struct pair *p)
{
	struct buffer b;
	bool good = true;

	buffer_get(p, &b, true, 4096, 0);
	buffer_fill(p, &b, 0, 1000, p->rank ? 4 : 5);
	if (p->rank == 1)
		pair_must(p, fi_recv(p->ep, b.at, 1000, b.desc, p->peer, NULL), "recv");
	pair_both(p, true);
	if (p->rank == 0) {
		pair_must(p, fi_inject(p->ep, b.at, 1000, p->peer), "fi_inject");
		buffer_fill(p, &b, 0, 1000, 6);
	} else {
		good = pair_wait(p) == 0 && buffer_has(p, &b, 0, 1000, 5);
	}
	good = pair_both(p, good);
	pair_say(p, good, "injected from a device, which is written right after");
	buffer_put(p, &b);
}

/* ---- RMA */

struct target {
	uint64_t addr, key;
};

/* Rank 1 says where its buffer is. */
static struct target target_of(struct pair *p, struct buffer *b)
{
	const bool virt = p->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
	const struct target mine = {virt ? (uintptr_t)b->at : 0, fi_mr_key(b->mr)};
	struct target theirs;

	pair_swap(p, &mine, &theirs, sizeof(mine));
	return p->rank ? mine : theirs;
}

static int rma(struct pair *p, struct buffer *b, const struct target *t, size_t at,
	       size_t len, bool put)
{
	struct iovec iov = {b->at + at, len};
	struct fi_rma_iov remote = {t->addr + at, len, t->key};
	const struct fi_msg_rma msg = {.msg_iov = &iov,
				       .desc = &b->desc,
				       .iov_count = 1,
				       .addr = p->peer,
				       .rma_iov = &remote,
				       .rma_iov_count = 1};

	pair_must(p,
		  put ? fi_writemsg(p->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE)
		      : fi_readmsg(p->ep, &msg, FI_COMPLETION),
		  "rma");
	return pair_wait(p);
}

static void moves(struct pair *p, int kinds, int pieces)
{
	static const size_t sizes[] = {8, 5000, LARGE};
	bool device = p->rank == 0 ? kinds & 1 : kinds & 2;
	struct buffer b;
	struct target t;

	buffer_get(p, &b, device, (size_t)4 << 20, device ? pieces : 0);
	t = target_of(p, &b);
	for (int put = 0; put < 2; put++) {
		int from = put ? 0 : 1; /* the rank whose bytes it is */

		for (size_t i = 0; i < 3; i++) {
			uint32_t seed = (uint32_t)(kinds * 32 + i * 2) + (uint32_t)put;
			bool good = true;

			buffer_fill(p, &b, 5, sizes[i], p->rank == from ? seed : ~seed);
			pair_both(p, true);
			if (p->rank == 0)
				good = rma(p, &b, &t, 5, sizes[i], put) == 0;
			pair_both(p, true);
			good = good && buffer_has(p, &b, 5, sizes[i], seed);
			good = pair_both(p, good);
			pair_say(p, good, "%s of %zu bytes, %s at the initiator, %s%s",
				 put ? "put" : "get", sizes[i], kind(kinds & 1),
				 kind(kinds & 2), pieces ? ", in pieces" : "");
		}
	}
	buffer_put(p, &b);
}

/* Processes of one host: until the target's memory is mapped here, and then once more.
 * (What was asked for before may still come, and be counted.) */
static void mapped(struct pair *p, int pieces)
{
	uint64_t before = 0;
	struct buffer b;
	struct target t;
	bool good = true;
	time_t start = time(NULL);

	buffer_get(p, &b, true, (size_t)4 << 20, pieces);
	t = target_of(p, &b);
	buffer_fill(p, &b, 0, b.len, p->rank ? 1 : 2);
	pair_both(p, true);
	if (p->rank == 0) {
		uint64_t want = pieces ? 2 : 1;

		before = counted(p, "hmem.imported");
		while (good && counted(p, "hmem.imported") < before + want &&
		       time(NULL) - start < 60)
			good = rma(p, &b, &t, ((size_t)1 << 21) - 4, 8, true) == 0;
		pair_say(p, counted(p, "hmem.imported") >= before + want,
			 "memory %sof the target is mapped", pieces ? "in pieces " : "");
		good = good && rma(p, &b, &t, 0, b.len, true) == 0;
	}
	pair_both(p, true);
	good = pair_both(p, good && buffer_has(p, &b, 0, b.len, 2));
	pair_say(p, good, "a put into it");
	if (p->rank == 0)
		buffer_fill(p, &b, 0, b.len, 3);
	if (p->rank == 0)
		good = rma(p, &b, &t, 0, b.len, false) == 0 &&
		       buffer_has(p, &b, 0, b.len, 2);
	good = pair_both(p, good);
	pair_say(p, good, "a get from it");
	buffer_put(p, &b);
}

/* ---- atomics */

static bool sums(struct pair *p, struct buffer *word, struct buffer *result,
		 const struct target *t)
{
	uint64_t add[8], was[8];

	for (int i = 0; i < 8; i++)
		add[i] = (uint64_t)i + 1;
	buffer_write(p, word, add, sizeof(add));
	pair_must(p,
		  fi_fetch_atomic(p->ep, word->at, 8, word->desc, result->at,
				  result->desc, p->peer, t->addr, t->key, FI_UINT64,
				  FI_SUM, NULL),
		  "fi_fetch_atomic");
	if (pair_wait(p))
		return false;
	buffer_read(p, result, was, sizeof(was));
	for (int i = 0; i < 8; i++) {
		if (was[i] != 100 + (uint64_t)i)
			return false;
	}
	return true;
}

static bool swaps(struct pair *p, struct buffer *word, struct buffer *result,
		  const struct target *t)
{
	uint64_t one[2] = {7777, 101}, was; /* the new word; what 100 + 1 is by now */

	buffer_write(p, word, one, sizeof(one));
	pair_must(p,
		  fi_compare_atomic(p->ep, word->at, 1, word->desc, word->at + 8,
				    word->desc, result->at, result->desc, p->peer,
				    t->addr, t->key, FI_UINT64, FI_CSWAP, NULL),
		  "fi_compare_atomic");
	if (pair_wait(p))
		return false;
	buffer_read(p, result, &was, sizeof(was));
	return was == 101;
}

static void atomics(struct pair *p)
{
	struct buffer word, result;
	struct target t;
	uint64_t at[8];
	bool good = true;

	buffer_get(p, &word, true, 4096, 0);
	buffer_get(p, &result, true, 4096, 0);
	for (int i = 0; i < 8; i++)
		at[i] = 100 + (uint64_t)i;
	if (p->rank == 1)
		buffer_write(p, &word, at, sizeof(at));
	t = target_of(p, &word);
	if (p->rank == 0)
		good = sums(p, &word, &result, &t);
	good = pair_both(p, good);
	pair_say(p, good, "sums of 8 words of a device, what was there, to a device");
	if (p->rank == 0)
		good = swaps(p, &word, &result, &t);
	good = pair_both(p, good);
	pair_say(p, good, "a word of a device is swapped");
	if (p->rank == 1) {
		buffer_read(p, &word, at, sizeof(at));
		good = at[0] == 7777;
		for (int i = 1; i < 8; i++)
			good = good && at[i] == 101 + 2 * (uint64_t)i;
	}
	good = pair_both(p, good);
	pair_say(p, good, "the words are there");
	buffer_put(p, &word);
	buffer_put(p, &result);
}

static void all(struct pair *p)
{
	pair_gpu(p);
	pair_open(p);
	pair_say(p, p->info->caps & FI_HMEM && p->info->domain_attr->mr_mode & FI_MR_HMEM,
		 "FI_HMEM is granted, and takes registrations");
	messages(p);
	mixed(p);
	inject(p);
	for (int kinds = 1; kinds < 4; kinds++)
		moves(p, kinds, 0);
	moves(p, 3, 2);
	if (strcmp(p->info->domain_attr->name, "shm") == 0) {
		mapped(p, 0);
		mapped(p, 2);
	}
	atomics(p);
	pair_close(p);
}

/* ---- bad input */

static int reg(struct pair *p, uint64_t at, size_t len, int device, struct fid_mr **mr)
{
	struct iovec iov = {(void *)(uintptr_t)at, len};
	struct fi_mr_attr attr = {.mr_iov = &iov,
				  .iov_count = 1,
				  .access = FI_SEND | FI_RECV,
				  .iface = FI_HMEM_CUDA,
				  .device.cuda = device};

	return fi_mr_regattr(p->domain, &attr, 0, mr);
}

/* A child has nothing of the GPU, and goes on without. */
static bool forks(void)
{
	struct fi_info *hints = pair_hints(), *info = NULL;
	int status;
	pid_t pid = tap_fork();

	if (pid == 0) {
		bool none = fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) ==
			    -FI_ENODATA;

		hints->caps &= ~FI_HMEM;
		_exit(none && fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints,
					 &info) == 0
			      ? 0
			      : 1);
	}
	fi_freeinfo(hints);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void refusals(struct pair *p)
{
	uint64_t dev = app_alloc(p->app, 65536), managed = app_managed(p->app, 4096);
	struct fi_info *hints = pair_hints(), *info = NULL;
	struct fid_mr *mr;
	char host[4096];

	hints->domain_attr->mr_mode &= ~FI_MR_HMEM;
	pair_say(p,
		 fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) ==
			 -FI_ENODATA,
		 "FI_HMEM without FI_MR_HMEM: no entry");
	fi_freeinfo(hints);
	pair_say(p, reg(p, (uintptr_t)host, sizeof(host), 0, &mr) == -FI_EINVAL,
		 "a host pointer given as a device's is refused");
	pair_say(p, reg(p, dev, 65536, 1, &mr) == -FI_EINVAL,
		 "a pointer of another device is refused");
	pair_say(p, reg(p, dev, 65536, 9, &mr) == -FI_ENODEV,
		 "a device that there isn't is refused");
	pair_say(p, reg(p, dev, 65536 + 4096 * 1024, 0, &mr) == -FI_EINVAL,
		 "more than was allocated is refused");
	pair_say(p, reg(p, managed, 4096, 0, &mr) == -FI_EINVAL,
		 "managed memory is the host's");
	pair_say(p, forks(), "a forked child finds no GPU, and works without");
	app_free(p->app, dev);
}

/* NICs that can't be given the memory: its own side's way is by the host. */
static void no_dmabuf(struct pair *p)
{
	struct buffer b;
	struct iovec iov;
	struct fi_mr_attr attr = {.mr_iov = &iov,
				  .iov_count = 1,
				  .access = FI_REMOTE_WRITE,
				  .requested_key = 1,
				  .iface = FI_HMEM_CUDA};
	struct fid_mr *mr;
	struct target t;
	bool good = true;
	int p2p = FI_HMEM_P2P_DISABLED;

	pair_gpu(p);
	pair_open(p);
	pair_say(p,
		 fi_setopt(&p->ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			   sizeof(p2p)) == -FI_EOPNOTSUPP,
		 "that nothing goes from device to device can't be promised");
	buffer_get(p, &b, false, 8192, 0);
	t = target_of(p, &b);
	if (p->rank == 0) {
		app_knob(p->app, "dmabuf", 0);
		iov = (struct iovec){(void *)(uintptr_t)app_alloc(p->app, 8192), 8192};
		pair_say(p, fi_mr_regattr(p->domain, &attr, 0, &mr) != 0,
			 "without DMA buffers peers get no access");
		attr.access = FI_WRITE;
		pair_must(p, fi_mr_regattr(p->domain, &attr, 0, &mr), "regattr");
		buffer_put(p, &b);
		b = (struct buffer){true, iov.iov_base, 8192, mr, fi_mr_desc(mr)};
		buffer_fill(p, &b, 0, 8192, 21);
		good = rma(p, &b, &t, 0, 8192, true) == 0;
	}
	pair_both(p, true);
	good = pair_both(p, good && (p->rank == 0 || buffer_has(p, &b, 0, 8192, 21)));
	pair_say(p, good, "a put from such memory goes by the host");
	buffer_put(p, &b);
	pair_close(p);
}

static void faults(struct pair *p)
{
	uint64_t slow = counted(p, "hmem.longer"), staged = counted(p, "hmem.staged");
	uint64_t dev = app_alloc(p->app, 65536);
	struct fid_mr *mr;

	app_knob(p->app, "export-ms", 100);
	pair_say(p, reg(p, dev, 4096, 0, &mr) == 0 && fi_close(&mr->fid) == 0,
		 "a registration that takes 100 ms");
	app_knob(p->app, "export-ms", 0);
	pair_say(p, counted(p, "hmem.longer") == slow + 1, "it is counted as a long one");
	app_knob(p->app, "fail-export", 4);
	pair_say(p, reg(p, dev + 8192, 4096, 0, &mr) == 0 && fi_close(&mr->fid) == 0,
		 "an export that is refused is no error");
	app_knob(p->app, "fail-export", 0);
	pair_say(p, counted(p, "hmem.staged") == staged + 1, "it is counted as staged");
	app_free(p->app, dev);
}

static void freed(struct pair *p)
{
	uint64_t dev = app_alloc(p->app, 65536), again, changed, found;
	struct fid_mr *mr;
	ssize_t ret;

	pair_must(p, reg(p, dev, 65536, 0, &mr), "regattr");
	pair_must(p, fi_close(&mr->fid), "close");
	found = counted(p, "hmem.found");
	pair_must(p, reg(p, dev, 65536, 0, &mr), "regattr");
	pair_must(p, fi_close(&mr->fid), "close");
	pair_say(p, counted(p, "hmem.found") == found + 1, "a registration is kept");
	changed = counted(p, "hmem.changed");
	app_free(p->app, dev);
	again = app_alloc(p->app, 65536);
	if (again != dev)
		pair_must(p, -FI_EINVAL, "the stand-in gives the same address again");
	pair_must(p, reg(p, again, 65536, 0, &mr), "regattr");
	pair_say(p, counted(p, "hmem.changed") == changed + 1,
		 "of memory that was freed and is somebody else's it is made anew");
	app_free(p->app, again);
	ret = fi_send(p->ep, (void *)(uintptr_t)again, 64, fi_mr_desc(mr), p->peer, NULL);
	pair_say(p, ret == -FI_EFAULT || (ret == 0 && pair_wait(p) == FI_EFAULT),
		 "memory that was freed under its registration isn't sent");
	pair_must(p, fi_close(&mr->fid), "close");
}

/* Posted while it was there: the receive fails, and the sender goes on. */
static void freed_late(struct pair *p)
{
	struct buffer b;
	bool good;

	buffer_get(p, &b, true, 8192, 0);
	buffer_fill(p, &b, 0, 64, 3);
	if (p->rank == 1) {
		pair_must(p, fi_recv(p->ep, b.at, 64, b.desc, p->peer, NULL), "recv");
		app_free(p->app, (uintptr_t)b.at);
	}
	pair_both(p, true);
	if (p->rank == 0)
		pair_must(p, fi_send(p->ep, b.at, 64, b.desc, p->peer, NULL), "send");
	good = pair_wait(p) == (p->rank ? FI_EFAULT : 0);
	good = pair_both(p, good);
	pair_say(p, good, "a receive whose memory was freed fails, the send does not");
	buffer_put(p, &b);
}

static void failed_device(struct pair *p)
{
	struct buffer b;
	ssize_t ret;

	buffer_get(p, &b, true, 8192, 0);
	if (p->rank == 0) {
		app_knob(p->app, "error", 719);
		ret = fi_send(p->ep, b.at, 64, b.desc, p->peer, NULL);
		pair_say(p, ret == -FI_EIO || ret == -FI_EFAULT,
			 "a device that has failed: its memory isn't sent (%zd)", ret);
	}
	pair_both(p, true);
}

static void bad(struct pair *p)
{
	pair_gpu(p);
	pair_open(p);
	if (p->rank == 0) {
		refusals(p);
		faults(p);
		freed(p);
	}
	pair_both(p, true);
	freed_late(p);
	failed_device(p);
	_exit(0); /* of rank 0's device nothing can be closed any more */
}

/* Memory that can't be exported goes the other way. */
static void not_mapped(struct pair *p)
{
	uint64_t refused;
	bool good = true;
	struct buffer b;
	struct target t;

	pair_gpu(p);
	app_knob(p->app, "ipc", 0);
	pair_open(p);
	buffer_get(p, &b, true, 65536, 0);
	t = target_of(p, &b);
	buffer_fill(p, &b, 0, b.len, p->rank ? 1 : 2);
	pair_both(p, true);
	refused = counted(p, "hmem.exported");
	for (int i = 0; p->rank == 0 && good && i < 100; i++)
		good = rma(p, &b, &t, 0, b.len, true) == 0;
	pair_both(p, true);
	good = good && counted(p, "hmem.imported") == 0 && refused == 0 &&
	       counted(p, "hmem.exported") == 0;
	good = pair_both(p, good && buffer_has(p, &b, 0, b.len, 2));
	pair_say(p, good, "100 puts into memory that can't be exported");
	buffer_put(p, &b);
	pair_close(p);
}

static void options(struct pair *p)
{
	int p2p = FI_HMEM_P2P_REQUIRED;
	struct fid_ep *ep;
	bool no = false;

	pair_gpu(p);
	pair_open(p);
	pair_say(p,
		 fi_setopt(&p->ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			   sizeof(p2p)) == -FI_EOPNOTSUPP,
		 "that everything goes from device to device can't be promised");
	p2p = FI_HMEM_P2P_DISABLED;
	pair_say(p,
		 fi_setopt(&p->ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			   sizeof(p2p)) == -FI_EOPBADSTATE,
		 "that nothing does is said before the endpoint is reached");
	pair_must(p, fi_endpoint(p->domain, p->info, &ep, NULL), "fi_endpoint");
	pair_say(p,
		 fi_setopt(&ep->fid, FI_OPT_ENDPOINT, FI_OPT_FI_HMEM_P2P, &p2p,
			   sizeof(p2p)) == 0,
		 "then it can be");
	pair_must(p, fi_close(&ep->fid), "close");
	pair_say(p,
		 fi_setopt(&p->ep->fid, FI_OPT_ENDPOINT, 10, &no, sizeof(no)) ==
			 -FI_EOPNOTSUPP,
		 "it doesn't go without calls of the driver");
	pair_close(p);
}

/* Nobody has a GPU: the driver is not even looked for. */
static void none(struct pair *p)
{
	struct fi_info *hints = pair_hints(), *info = NULL;

	setenv("WEFT_GPU_LIB", "none", 1);
	pair_say(p,
		 fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) ==
			 -FI_ENODATA,
		 "FI_HMEM without a GPU: no entry");
	hints->caps &= ~FI_HMEM;
	pair_say(p,
		 fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info) == 0 &&
			 info && !(info->caps & FI_HMEM),
		 "others find theirs");
	fi_freeinfo(info);
	fi_freeinfo(hints);
}

static const char *about; /* what runs */

static void line(const char *text)
{
	if (text[0] == '#')
		tap_diag("%s", text + 2);
	else
		tap_ok(text[0] == '1', "%s: %s", about, text + 2);
}

static void run(const char *words, void (*fn)(struct pair *p))
{
	about = words;
	tap_ok(pair_run(fn, line), "%s: both end well", words);
}

static void library_name(void)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];

	snprintf(path, sizeof(path), "%s/.libs/libweft-gpu.so", build ? build : ".");
	setenv("WEFT_GPU_LIB", path, 1);
}

int main(void)
{
	const char *named = getenv("HMEM_WIRES");
	char wires[64];

	snprintf(wires, sizeof(wires), "%s", named ? named : "shm uet");
	run("no GPU", none);
	library_name();
	for (char *rest, *w = strtok_r(wires, " ", &rest); w;
	     w = strtok_r(NULL, " ", &rest)) {
		bool shm = strcmp(w, "shm") == 0;

		setenv("FI_WEFT_WIRE", w, 1);
		setenv("FI_WEFT_SHM", shm ? "1" : "0", 1);
		run(w, all);
		if (strcmp(w, "verbs") == 0)
			run("verbs", no_dmabuf);
		if (!shm) {
			setenv("FI_WEFT_SHM", "1", 1);
			run("on one host, with a wire to others", all);
		}
		if (shm) {
			setenv("FI_WEFT_CMA", "0", 1);
			run("shm without attach", all);
			unsetenv("FI_WEFT_CMA");
			run("options", options);
			run("not exported", not_mapped);
			run("bad input", bad);
		}
	}
	return tap_done();
}
