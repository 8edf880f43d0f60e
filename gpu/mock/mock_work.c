/* SPDX-License-Identifier: BSD-2-Clause */
/* What streams do: each kind of work, and how it is put on one. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/mock/mock_api.h"

#define NAP_FIRST 20000 /* ns between two looks at a word, doubled up to the last */
#define NAP_LAST  1000000

#define PIECE                                                                     \
	65536 /* bytes that are moved at a time where the host can't touch memory \
	       */

/* Bytes of one side, at most len and of one piece: memory of devices by its file, since
 * the host may have no access to it. How many; 0: it isn't there. */
static size_t side_move(uintptr_t addr, char *bytes, size_t len, bool write)
{
	const struct mock_piece *p;
	ssize_t n = (ssize_t)len;

	pthread_mutex_lock(&mock.lock);
	p = mock_piece_at(addr);
	if (p && p->phys && p->kind == MOCK_MEM_DEVICE) {
		const off_t at = (off_t)(addr - p->addr);
		const size_t room = p->len - (size_t)at;

		n = (ssize_t)(len < room ? len : room);
		n = write ? pwrite(p->phys->fd, bytes, (size_t)n, at)
			  : pread(p->phys->fd, bytes, (size_t)n, at);
	} else if (write) {
		memcpy((void *)addr, bytes, len);
	} else {
		memcpy(bytes, (const void *)addr, len);
	}
	pthread_mutex_unlock(&mock.lock);
	return n > 0 ? (size_t)n : 0;
}

static CUresult row_move(uintptr_t dst, uintptr_t src, size_t len)
{
	char bytes[PIECE];

	while (len) {
		const size_t want = len < sizeof(bytes) ? len : sizeof(bytes);
		const size_t n = side_move(src, bytes, want, false);
		size_t done = 0, more;

		for (; done < n; done += more) {
			more = side_move(dst + done, bytes + done, n - done, true);
			if (!more)
				return CUDA_ERROR_ILLEGAL_ADDRESS;
		}
		if (!n)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		dst += n;
		src += n;
		len -= n;
	}
	return CUDA_SUCCESS;
}

static bool host_may(void)
{
	bool may;

	pthread_mutex_lock(&mock.lock);
	may = mock_knob(MOCK_HOST);
	pthread_mutex_unlock(&mock.lock);
	return may;
}

static CUresult fill_do(const struct mock_work *w)
{
	char bytes[PIECE];
	size_t done = 0, n;

	memset(bytes, (int)w->value, sizeof(bytes));
	for (; done < w->len; done += n) {
		n = w->len - done < sizeof(bytes) ? w->len - done : sizeof(bytes);
		n = side_move(w->dst + done, bytes, n, true);
		if (!n)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

static CUresult copy_do(const struct mock_work *w)
{
	for (size_t row = 0; row < w->rows; row++) {
		const uintptr_t dst = w->dst + row * w->dst_pitch;
		const uintptr_t src = w->src + row * w->src_pitch;

		if (!mock_reachable(dst, w->len) || !mock_reachable(src, w->len))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		if (host_may())
			memcpy((void *)dst, (const void *)src, w->len);
		else if (row_move(dst, src, w->len) != CUDA_SUCCESS)
			return CUDA_ERROR_ILLEGAL_ADDRESS;
	}
	return CUDA_SUCCESS;
}

/* A stream that waits holds its thread; an error that sticks lets it go. */
static CUresult wait_do(const struct mock_work *w)
{
	_Atomic uint64_t *word = (_Atomic uint64_t *)w->dst;
	long nap = NAP_FIRST;

	while ((int64_t)(__atomic_load_n((uint64_t *)word, __ATOMIC_ACQUIRE) - w->value) <
	       0) {
		const CUresult rc = mock_ready();

		if (rc != CUDA_SUCCESS)
			return rc;
		nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
		nap = nap * 2 < NAP_LAST ? nap * 2 : NAP_LAST;
	}
	return CUDA_SUCCESS;
}

static CUresult after_do(const struct mock_work *w)
{
	CUresult rc = CUDA_SUCCESS;

	pthread_mutex_lock(&mock.lock);
	while (w->event->done < w->value && rc == CUDA_SUCCESS) {
		pthread_cond_wait(&mock.changed, &mock.lock);
		rc = (CUresult)mock_knob(MOCK_ERROR);
	}
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_work_do(struct mock_work *w)
{
	switch (w->kind) {
	case MOCK_WORK_COPY:
	case MOCK_WORK_COPY2D:
		return copy_do(w);
	case MOCK_WORK_FILL:
		if (!mock_reachable(w->dst, w->len))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		return fill_do(w);
	case MOCK_WORK_WRITE:
		if (!mock_reachable(w->dst, sizeof(uint64_t)))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		__atomic_store_n((uint64_t *)w->dst, w->value, __ATOMIC_RELEASE);
		return CUDA_SUCCESS;
	case MOCK_WORK_WAIT:
		if (!mock_reachable(w->dst, sizeof(uint64_t)))
			return CUDA_ERROR_ILLEGAL_ADDRESS;
		return wait_do(w);
	case MOCK_WORK_CALL:
		w->call(w->arg);
		return CUDA_SUCCESS;
	case MOCK_WORK_KERNEL:
		w->kernel->fn(&w->kernel->grid, w->kernel->args);
		return CUDA_SUCCESS;
	case MOCK_WORK_RECORD:
		pthread_mutex_lock(&mock.lock);
		if (w->event->done < w->value)
			w->event->done = w->value;
		pthread_cond_broadcast(&mock.changed);
		pthread_mutex_unlock(&mock.lock);
		return CUDA_SUCCESS;
	case MOCK_WORK_AFTER:
		return after_do(w);
	case MOCK_WORK_DROP:
		return CUDA_SUCCESS; /* when it is freed */
	}
	return CUDA_ERROR_UNKNOWN;
}

/* The pointers of a copy point into the copy. */
static struct mock_kernel_call *kernel_copy(const struct mock_work *w)
{
	struct mock_kernel_call *call = malloc(w->kernel_len);

	if (!call)
		return NULL;
	memcpy(call, w->kernel, w->kernel_len);
	call->args = (void **)(call + 1);
	for (size_t i = 0; call->args[i]; i++)
		call->args[i] =
			(char *)call + ((char *)w->kernel->args[i] - (char *)w->kernel);
	return call;
}

struct mock_work *mock_work_copy(const struct mock_work *work)
{
	struct mock_work *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	*w = *work;
	w->next = NULL;
	if (w->kernel) {
		w->kernel = kernel_copy(work);
		if (!w->kernel) {
			free(w);
			return NULL;
		}
	}
	return w;
}

void mock_work_free(struct mock_work *work)
{
	if (work->event)
		mock_event_put(work->event);
	if (work->graph)
		mock_graph_put(work->graph);
	free(work->kernel);
	free(work);
}

static CUresult put(CUstream stream, const struct mock_work *work)
{
	struct mock_work *w = mock_work_copy(work);

	return w ? mock_put(stream, w) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Between two memories of the host the driver waits for the stream to come there. */
static bool waits(CUdeviceptr dst, CUdeviceptr src)
{
	const struct mock_piece *d, *s;
	bool host;

	pthread_mutex_lock(&mock.lock);
	d = mock_piece_at(dst);
	s = mock_piece_at(src);
	host = (!d || !d->phys) && (!s || !s->phys);
	pthread_mutex_unlock(&mock.lock);
	return host;
}

CUresult mock_memcpy_async(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream)
{
	const CUresult rc = put(stream, &(struct mock_work){.kind = MOCK_WORK_COPY,
							    .dst = dst,
							    .src = src,
							    .len = len,
							    .rows = 1});

	if (rc == CUDA_SUCCESS && waits(dst, src))
		return mock_stream_settle(stream);
	return rc;
}

CUresult mock_memcpy_2d_async(const CUDA_MEMCPY2D *c, CUstream stream)
{
	if (c->srcMemoryType != CU_MEMORYTYPE_UNIFIED ||
	    c->dstMemoryType != CU_MEMORYTYPE_UNIFIED || c->srcXInBytes || c->srcY ||
	    c->dstXInBytes || c->dstY || c->srcPitch < c->WidthInBytes ||
	    c->dstPitch < c->WidthInBytes)
		return CUDA_ERROR_INVALID_VALUE;
	return put(stream, &(struct mock_work){.kind = MOCK_WORK_COPY2D,
					       .dst = c->dstDevice,
					       .src = c->srcDevice,
					       .len = c->WidthInBytes,
					       .rows = c->Height,
					       .dst_pitch = c->dstPitch,
					       .src_pitch = c->srcPitch});
}

CUresult mock_memset_d8_async(CUdeviceptr dst, unsigned char byte, size_t len,
			      CUstream stream)
{
	return put(stream, &(struct mock_work){.kind = MOCK_WORK_FILL,
					       .dst = dst,
					       .len = len,
					       .value = byte});
}

static CUresult memops_check(void)
{
	bool there;

	pthread_mutex_lock(&mock.lock);
	there = mock_knob(MOCK_MEMOPS) > 0;
	pthread_mutex_unlock(&mock.lock);
	return there ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult mock_stream_write_value64(CUstream stream, CUdeviceptr addr, uint64_t value,
				   unsigned flags)
{
	const CUresult rc = memops_check();

	if (rc != CUDA_SUCCESS || flags || addr % 8)
		return rc == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : rc;
	return put(stream, &(struct mock_work){
				   .kind = MOCK_WORK_WRITE, .dst = addr, .value = value});
}

CUresult mock_stream_batch_mem_op(CUstream stream, unsigned count,
				  CUstreamBatchMemOpParams *ops, unsigned flags)
{
	CUresult rc = memops_check();

	if (rc == CUDA_SUCCESS && (count == 0 || count >= MOCK_WORDS || flags))
		rc = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++) {
		if ((ops[i].operation != CU_STREAM_MEM_OP_WAIT_VALUE_64 &&
		     ops[i].operation != CU_STREAM_MEM_OP_WRITE_VALUE_64) ||
		    ops[i].value.flags || ops[i].value.address % 8)
			rc = CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < count && rc == CUDA_SUCCESS; i++)
		rc = put(
			stream,
			&(struct mock_work){
				.kind = ops[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64
						? MOCK_WORK_WAIT
						: MOCK_WORK_WRITE,
				.dst = ops[i].value.address,
				.value = ops[i].value.value64});
	return rc;
}

CUresult mock_launch_host_func(CUstream stream, CUhostFn fn, void *arg)
{
	return put(stream,
		   &(struct mock_work){.kind = MOCK_WORK_CALL, .call = fn, .arg = arg});
}
