/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/fi/tests/hmem_pair.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include "util/tap.h"
#include "util/tap_fork.h"

#define LONG_S 100 /* more than anything needs, on whatever machine */
#define PIECE  ((uint64_t)2 << 20)

static void finish(const struct pair *p)
{
	fflush(NULL);
	_exit(p->rank == 0 ? 3 : 4);
}

void pair_must(const struct pair *p, int64_t ret, const char *what)
{
	if (ret == 0)
		return;
	dprintf(p->tell, "# rank %d: %s: %s (%" PRId64 ")\n", p->rank, what,
		fi_strerror((int)-ret), ret);
	finish(p);
}

/* ---- two children */

static void child(struct pair *p, void (*fn)(struct pair *p))
{
	alarm(6 * LONG_S);
	fn(p);
	close(p->other);
	close(p->tell);
	_exit(0);
}

static void hear(FILE *from, void (*line)(const char *line))
{
	char text[512];

	while (fgets(text, sizeof(text), from)) {
		text[strcspn(text, "\n")] = 0;
		line(text);
	}
}

bool pair_run(void (*fn)(struct pair *p), void (*line)(const char *line))
{
	int pipes[2], ends[2], status, bad = 0;
	pid_t pid[2];
	FILE *from;

	if (pipe(pipes) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	for (int rank = 0; rank < 2; rank++) {
		pid[rank] = tap_fork();
		if (pid[rank] == 0) {
			struct pair p = {
				.rank = rank, .other = ends[rank], .tell = pipes[1]};

			close(pipes[0]);
			close(ends[!rank]);
			child(&p, fn);
		}
	}
	close(pipes[1]);
	close(ends[0]);
	close(ends[1]);
	from = fdopen(pipes[0], "r");
	hear(from, line);
	fclose(from);
	for (int rank = 0; rank < 2; rank++) {
		if (waitpid(pid[rank], &status, 0) != pid[rank] || status) {
			tap_diag("rank %d: status 0x%x", rank, (unsigned int)status);
			bad++;
		}
	}
	return !bad;
}

void pair_say(const struct pair *p, bool good, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	if (p->rank != 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dprintf(p->tell, "%d %s\n", good, text);
}

/* ---- what each has */

void pair_gpu(struct pair *p)
{
	void *at;

	p->app = app_open();
	if (!p->app)
		finish(p);
	if (app_on_mock(p->app))
		app_knob(p->app, "host", 0);
	p->gpu = app_gpu(p->app);
	app_device(p->app, 0);
	pair_must(p, gpu_queue_open(p->gpu, 0, &p->queue), "gpu_queue_open");
	pair_must(p, gpu_pinned_alloc(p->gpu, PAIR_MAX, &at), "gpu_pinned_alloc");
	p->bounce = at;
}

struct fi_info *pair_hints(void)
{
	struct fi_info *hints = fi_allocinfo();

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_HMEM;
	hints->fabric_attr->prov_name = strdup("weft");
	hints->domain_attr->mr_mode = FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY | FI_MR_LOCAL;
	return hints;
}

void pair_open(struct pair *p)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_info *hints = pair_hints();
	char name[64] = "", theirs[64];
	const char *host = getenv("HMEM_HOST");
	size_t len = sizeof(name);

	pair_must(p,
		  fi_getinfo(FI_VERSION(1, 17), host ? host : "127.0.0.1", NULL,
			     FI_SOURCE, hints, &p->info),
		  "fi_getinfo");
	fi_freeinfo(hints);
	pair_must(p, fi_fabric(p->info->fabric_attr, &p->fabric, NULL), "fi_fabric");
	pair_must(p, fi_domain(p->fabric, p->info, &p->domain, NULL), "fi_domain");
	pair_must(p, fi_av_open(p->domain, &av, &p->av, NULL), "fi_av_open");
	pair_must(p, fi_cq_open(p->domain, &cq, &p->cq, NULL), "fi_cq_open");
	pair_must(p, fi_endpoint(p->domain, p->info, &p->ep, NULL), "fi_endpoint");
	pair_must(p, fi_ep_bind(p->ep, &p->cq->fid, FI_TRANSMIT | FI_RECV), "bind");
	pair_must(p, fi_ep_bind(p->ep, &p->av->fid, 0), "bind");
	pair_must(p, fi_enable(p->ep), "fi_enable");
	pair_must(p, fi_getname(&p->ep->fid, name, &len), "fi_getname");
	pair_swap(p, name, theirs, sizeof(name));
	if (fi_av_insert(p->av, theirs, 1, &p->peer, 0, NULL) != 1)
		pair_must(p, -FI_EINVAL, "fi_av_insert");
}

void pair_close(struct pair *p)
{
	pair_must(p, fi_close(&p->ep->fid), "close");
	pair_must(p, fi_close(&p->cq->fid), "close");
	pair_must(p, fi_close(&p->av->fid), "close");
	pair_must(p, fi_close(&p->domain->fid), "close domain");
	pair_must(p, fi_close(&p->fabric->fid), "close fabric");
	fi_freeinfo(p->info);
}

/* ---- together */

static void late(const struct pair *p, time_t start, const char *what)
{
	if (time(NULL) - start > LONG_S)
		pair_must(p, -FI_ETIMEDOUT, what);
}

void pair_swap(const struct pair *p, const void *mine, void *theirs, size_t len)
{
	struct pollfd fd = {.fd = p->other, .events = POLLIN};
	time_t start = time(NULL);
	size_t got = 0;

	if (write(p->other, mine, len) != (ssize_t)len)
		pair_must(p, -FI_EIO, "the other rank is gone");
	while (got < len) {
		ssize_t n;

		if (p->ep)
			fi_cq_read(p->cq, NULL, 0);
		late(p, start, "the other rank says nothing");
		if (poll(&fd, 1, 1) <= 0)
			continue;
		n = read(p->other, (char *)theirs + got, len - got);
		if (n <= 0)
			pair_must(p, -FI_EIO, "the other rank is gone");
		got += (size_t)n;
	}
}

bool pair_both(const struct pair *p, bool good)
{
	char mine = good, theirs = 0;

	pair_swap(p, &mine, &theirs, 1);
	return mine && theirs;
}

int pair_wait(const struct pair *p)
{
	struct fi_cq_err_entry error = {0};
	struct fi_cq_data_entry entry;
	time_t start = time(NULL);

	for (;;) {
		ssize_t ret = fi_cq_read(p->cq, &entry, 1);

		if (ret == 1)
			return 0;
		if (ret == -FI_EAVAIL && fi_cq_readerr(p->cq, &error, 0) == 1)
			return error.err;
		late(p, start, "no completion");
		if (ret == -FI_EAGAIN)
			sched_yield();
	}
}

/* ---- memory */

void buffer_get(struct pair *p, struct buffer *b, bool device, size_t len, int pieces)
{
	static uint64_t keys;
	struct iovec iov;
	struct fi_mr_attr attr = {.mr_iov = &iov,
				  .iov_count = 1,
				  .requested_key = ++keys,
				  .access = FI_SEND | FI_RECV | FI_READ | FI_WRITE |
					    FI_REMOTE_READ | FI_REMOTE_WRITE,
				  .iface = device ? FI_HMEM_CUDA : FI_HMEM_SYSTEM};

	b->device = device;
	b->len = len;
	if (!device)
		b->at = malloc(len);
	else if (pieces)
		b->at = (uint8_t *)(uintptr_t)app_map(p->app, 0, PIECE, pieces, true);
	else
		b->at = (uint8_t *)(uintptr_t)app_alloc(p->app, len);
	iov = (struct iovec){b->at, len};
	pair_must(p, fi_mr_regattr(p->domain, &attr, 0, &b->mr), "fi_mr_regattr");
	b->desc = fi_mr_desc(b->mr);
}

void buffer_put(struct pair *p, struct buffer *b)
{
	pair_must(p, fi_close(&b->mr->fid), "close mr");
	if (!b->device)
		free(b->at);
}

static void copy(struct pair *p, void *to, const void *from, size_t len)
{
	pair_must(p, gpu_copy(p->queue, to, from, len), "gpu_copy");
	pair_must(p, gpu_queue_sync(p->queue, (uint64_t)LONG_S * 1000000000u),
		  "gpu_queue_sync");
}

/* What follows touches host memory that the provider's own thread reads and writes for
 * the peer, before the peer says that it is done: an order by way of another process,
 * which no sanitizer sees. Byte by byte, since memcpy() is a sanitizer's own. */
#define ORDERED_BY_PEER __attribute__((no_sanitize_thread))

ORDERED_BY_PEER static void bytes_move(uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i];
}

void buffer_read(struct pair *p, struct buffer *b, void *to, size_t len)
{
	if (!b->device) {
		bytes_move(to, b->at, len);
		return;
	}
	copy(p, p->bounce, b->at, len);
	memcpy(to, p->bounce, len);
}

void buffer_write(struct pair *p, struct buffer *b, const void *from, size_t len)
{
	if (!b->device) {
		bytes_move(b->at, from, len);
		return;
	}
	memcpy(p->bounce, from, len);
	copy(p, b->at, p->bounce, len);
}

static uint8_t byte_of(uint32_t seed, size_t i)
{
	return (uint8_t)(((i + 1) * (2 * seed + 1)) ^ (i >> 7) ^ (i >> 16));
}

ORDERED_BY_PEER void buffer_fill(struct pair *p, struct buffer *b, size_t at, size_t len,
				 uint32_t seed)
{
	uint8_t *to = b->device ? p->bounce : b->at + at;

	for (size_t i = 0; i < len; i++)
		to[i] = byte_of(seed, i);
	if (b->device && len)
		copy(p, b->at + at, p->bounce, len);
}

ORDERED_BY_PEER bool buffer_has(struct pair *p, struct buffer *b, size_t at, size_t len,
				uint32_t seed)
{
	const uint8_t *from = b->device ? p->bounce : b->at + at;

	if (b->device && len)
		copy(p, p->bounce, b->at + at, len);
	for (size_t i = 0; i < len; i++) {
		if (from[i] != byte_of(seed, i)) {
			dprintf(p->tell, "# rank %d: byte %zu of %zu differs\n", p->rank,
				i, len);
			return false;
		}
	}
	return true;
}
