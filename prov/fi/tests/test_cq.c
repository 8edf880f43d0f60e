/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queue: formats, order of entries and errors, growth, what is refused. */
#include "config.h"

#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "prov/fi/tests/fi_test.h"
#include "util/tap.h"

static struct env env;

static struct fid_cq *cq_open(enum fi_cq_format format, size_t size)
{
	struct fi_cq_attr attr = {.format = format, .size = size};
	struct fid_cq *cq;

	if (fi_cq_open(env.domain, &attr, &cq, NULL))
		tap_bail("no queue");
	return cq;
}

static void put(struct fid_cq *cq, uint64_t n)
{
	struct wfi_cq_entry entry = {
		.op_context = (void *)(uintptr_t)n,
		.flags = FI_RECV | FI_TAGGED,
		.len = 100 + n,
		.buf = &env,
		.data = 200 + n,
		.tag = 300 + n,
		.src = 400 + n,
	};

	wfi_cq_write(wfi_cq_of(&cq->fid), &entry);
}

static void put_error(struct fid_cq *cq, uint64_t n)
{
	struct wfi_cq_error error = {
		.entry = {.op_context = (void *)(uintptr_t)n,
			  .flags = FI_RECV,
			  .len = 5,
			  .data = 9,
			  .tag = 11,
			  .src = 12},
		.olen = 6,
		.err = FI_ETRUNC,
		.prov_errno = FI_ETRUNC,
	};

	wfi_cq_write_error(wfi_cq_of(&cq->fid), &error);
}

static void test_formats(void)
{
	static const struct {
		enum fi_cq_format format;
		size_t size;
	} rows[] = {
		{FI_CQ_FORMAT_UNSPEC, sizeof(struct fi_cq_entry)},
		{FI_CQ_FORMAT_CONTEXT, sizeof(struct fi_cq_entry)},
		{FI_CQ_FORMAT_MSG, sizeof(struct fi_cq_msg_entry)},
		{FI_CQ_FORMAT_DATA, sizeof(struct fi_cq_data_entry)},
		{FI_CQ_FORMAT_TAGGED, sizeof(struct fi_cq_tagged_entry)},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fi_cq_tagged_entry want[2], got[3] = {0};
		struct fid_cq *cq = cq_open(rows[i].format, 0);
		fi_addr_t src[3] = {0};
		char *at = (char *)got;

		memset(got, 0xee, sizeof(got));
		put(cq, 1);
		put(cq, 2);
		for (int k = 0; k < 2; k++)
			want[k] = (struct fi_cq_tagged_entry){
				.op_context = (void *)(uintptr_t)(k + 1),
				.flags = FI_RECV | FI_TAGGED,
				.len = 101 + (size_t)k,
				.buf = &env,
				.data = 201 + (uint64_t)k,
				.tag = 301 + (uint64_t)k};
		tap_is_int(fi_cq_readfrom(cq, got, 3, src), 2, "two entries are read");
		tap_is_mem(at, &want[0], rows[i].size, "the first");
		tap_is_mem(at + rows[i].size, &want[1], rows[i].size, "the second");
		tap_is_int((unsigned char)at[2 * rows[i].size], 0xee,
			   "nothing behind them");
		tap_is_int((int64_t)src[1], 402, "the source");
		tap_is_int(fi_cq_read(cq, got, 1), -FI_EAGAIN, "then it is empty");
		tap_is_int(fi_cq_readfrom(cq, got, 1, src), -FI_EAGAIN,
			   "with a source too");
		tap_is_int(fi_cq_sread(cq, got, 1, NULL, 0), -FI_EAGAIN, "and blocking");
		put(cq, 3);
		tap_is_int(fi_cq_sreadfrom(cq, got, 1, src, NULL, 1000), 1, "one more");
		tap_is_int((int64_t)(uintptr_t)got[0].op_context, 3, "it is the third");
		fi_close(&cq->fid);
	}
}

static void test_errors_in_order(void)
{
	struct fid_cq *cq = cq_open(FI_CQ_FORMAT_MSG, 0);
	struct fi_cq_msg_entry got[8];
	struct fi_cq_err_entry err = {0};

	tap_is_int(fi_cq_readerr(cq, &err, 0), -FI_EAGAIN, "no error at first");
	put(cq, 1);
	put(cq, 2);
	put_error(cq, 3);
	put_error(cq, 4);
	put(cq, 5);
	tap_is_int(fi_cq_readerr(cq, &err, 0), -FI_EAGAIN,
		   "the error isn't at the head yet");
	tap_is_int(fi_cq_read(cq, got, 8), 2, "reading stops before the error");
	tap_is_int(fi_cq_read(cq, got, 8), -FI_EAVAIL, "then says that there is one");
	tap_is_int(fi_cq_read(cq, got, 8), -FI_EAVAIL, "as often as it is asked");
	tap_is_int(fi_cq_sread(cq, got, 8, NULL, 1000), -FI_EAVAIL, "blocking too");
	tap_is_int(fi_cq_readerr(cq, &err, 0), 1, "the first error");
	tap_is_int((int64_t)(uintptr_t)err.op_context, 3, "its context");
	tap_is_int(err.err, FI_ETRUNC, "its err");
	tap_is_int((int64_t)err.olen, 6, "its olen");
	tap_is_int((int64_t)err.tag, 11, "its tag");
	tap_ok(strstr(fi_cq_strerror(cq, err.prov_errno, NULL, NULL, 0), "runc"),
	       "its text: %s", fi_cq_strerror(cq, err.prov_errno, NULL, NULL, 0));
	tap_is_int(fi_cq_read(cq, got, 8), -FI_EAVAIL, "the second is next");
	tap_is_int(fi_cq_readerr(cq, &err, 0), 1, "it is read");
	tap_is_int(fi_cq_read(cq, got, 8), 1, "what came after it");
	tap_is_int((int64_t)(uintptr_t)got[0].op_context, 5, "is the right one");
	put_error(cq, 6);
	tap_is_int(fi_close(&cq->fid), 0, "closing drops what wasn't read");
}

/* The entry of the application may be shorter or longer than ours. */
static void test_error_versions(void)
{
	union {
		struct fi_cq_err_entry old;
		char all[128];
	} err;
	static const uint32_t api[] = {FI_VERSION(1, 4), FI_VERSION(1, 5),
				       FI_VERSION(1, 20)};
	char room[8];
	fi_addr_t src;

	for (int i = 0; i < 3; i++) {
		struct env e;
		struct fi_cq_attr attr = {0};
		struct fid_cq *cq;

		env_open(&e, &(struct env_want){.api = api[i]});
		fi_cq_open(e.domain, &attr, &cq, NULL);
		put_error(cq, 1);
		put_error(cq, 2);
		memset(&err, 0x55, sizeof(err));
		err.old.err_data_size = 0;
		fi_cq_readerr(cq, &err.old, 0);
		tap_ok(err.old.err_data == NULL, "no data of the provider's");
		memset(&err, 0x55, sizeof(err));
		err.old.err_data = room;
		err.old.err_data_size = sizeof(room);
		/* Not by fi_cq_readerr, which writes to it in libfabric 2.x. */
		cq->ops->readerr(cq, &err.old, 0);
		if (api[i] == FI_VERSION(1, 4))
			tap_is_int((int64_t)err.old.err_data_size, sizeof(room),
				   "1.4 has no err_data_size to write");
		else
			tap_ok(err.old.err_data == room && !err.old.err_data_size,
			       "0 bytes in the application's room");
		memcpy(&src, err.all + 80, sizeof(src)); /* whatever the headers have */
		tap_is_int((int64_t)src,
			   api[i] == FI_VERSION(1, 20) ? 12 : 0x5555555555555555ll,
			   "src_addr from 1.20 on only");
		fi_close(&cq->fid);
		env_close(&e);
	}
}

static void test_growth(void)
{
	struct fid_cq *cq = cq_open(FI_CQ_FORMAT_CONTEXT, 100);
	struct wfi_cq *inside = wfi_cq_of(&cq->fid);
	struct fi_cq_entry got[7];
	uint64_t in = 0, out = 0;
	bool order = true;

	for (int i = 0; i < 99; i++)
		put(cq, in++);
	tap_ok(!wfi_cq_full(inside), "99 of 100: not full");
	put(cq, in++);
	tap_ok(wfi_cq_full(inside), "100 of 100: full");
	/* Writing goes on: what is under way must not be lost. Read in between, so that
	 * the ring wraps in each of its sizes. */
	for (int round = 0; round < 2000; round++) {
		for (int i = 0; i < 9; i++)
			put(cq, in++);
		fi_cq_read(cq, got, 7);
		for (int i = 0; i < 7; i++)
			order = order && (uintptr_t)got[i].op_context == out++;
	}
	while (fi_cq_read(cq, got, 1) == 1)
		order = order && (uintptr_t)got[0].op_context == out++;
	tap_ok(order, "%" PRIu64 " entries in order", out);
	tap_is_int((int64_t)out, (int64_t)in, "none is missing");
	tap_ok(!wfi_cq_full(inside), "empty: not full");
	fi_close(&cq->fid);
}

static void test_refused(void)
{
	struct fi_cq_attr attr = {0};
	struct fid_cq *cq = NULL;
	int fd = -1;

	attr.wait_obj = 99;
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, NULL), -FI_ENOSYS,
		   "a wait object that isn't there");
	attr.wait_obj = FI_WAIT_SET;
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, NULL), -FI_EINVAL,
		   "no wait set is given");
	attr = (struct fi_cq_attr){.flags = 1ull << 40};
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, NULL), -FI_EBADFLAGS,
		   "unknown flags");
	attr = (struct fi_cq_attr){.flags = FI_PEER};
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, NULL), -FI_EINVAL,
		   "a peer's queue");
	attr = (struct fi_cq_attr){.format = 77};
	tap_is_int(fi_cq_open(env.domain, &attr, &cq, NULL), -FI_EINVAL,
		   "unknown format");
	cq = cq_open(FI_CQ_FORMAT_MSG, 0);
	tap_is_int(fi_control(&cq->fid, FI_GETWAIT, &fd), -FI_ENODATA,
		   "FI_WAIT_NONE: no fd");
	tap_is_int(fi_control(&cq->fid, FI_QUEUE_WORK, &fd), -FI_ENOSYS,
		   "other commands");
	tap_is_int(fi_close(&env.domain->fid), -FI_EBUSY,
		   "the domain waits for its queue");
	fi_close(&cq->fid);
}

static void test_attached(void)
{
	struct fid_cq *cq = cq_open(FI_CQ_FORMAT_DATA, 0);
	struct wfi_cq *inside = wfi_cq_of(&cq->fid);
	struct fi_cq_data_entry got[8];
	struct engine g;

	engine_init(&g);
	g.cq = inside;
	tap_is_int(wfi_cq_attach(inside, &g.base), 0, "attach for transmit");
	tap_is_int(wfi_cq_attach(inside, &g.base), 0, "attach for receive");
	engine_post(&g, 3);
	tap_is_int(fi_cq_read(cq, NULL, 0), 0, "a read of count 0 progresses");
	tap_is_int(atomic_load(&g.polls), 1, "each engine once");
	tap_is_int(fi_cq_read(cq, got, 8), 3, "and leaves the entries");
	tap_is_int(atomic_load(&g.polls), 1, "reading what is there doesn't progress");
	tap_is_int((int64_t)got[2].data, 2, "in order");
	tap_is_int(fi_close(&cq->fid), -FI_EBUSY, "no close while attached");
	wfi_cq_detach(inside, &g.base);
	tap_is_int(fi_close(&cq->fid), -FI_EBUSY, "nor while attached once");
	wfi_cq_detach(inside, &g.base);
	tap_is_int(fi_close(&cq->fid), 0, "then it closes");
	engine_fini(&g);
}

int main(void)
{
	env_open(&env, &(struct env_want){0});
	test_formats();
	test_errors_in_order();
	test_error_versions();
	test_growth();
	test_refused();
	test_attached();
	env_close(&env);
	return tap_done();
}
