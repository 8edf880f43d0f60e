/* SPDX-License-Identifier: BSD-2-Clause */
/* What goes wrong on a device, made to go wrong on the stand-in: each in a process of its
 * own, since some of it sticks. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/gate.h"
#include "gpu/tests/app.h"
#include "util/tap.h"
#include "util/tap_fork.h"

#define LIMIT (60ull * 1000000000)
#define LEN   4096u

/* In a child: what must be so, and is told when it is not. */
static bool failed;

static void must(bool good, struct gpu *gpu, const char *what)
{
	if (good)
		return;
	failed = true;
	tap_diag("%s: \"%s\"", what, gpu_error(gpu));
}

static struct gpu_queue *queue_new(struct gpu *gpu)
{
	struct gpu_queue *q = NULL;

	must(gpu_queue_open(gpu, 0, &q) == 0, gpu, "queue");
	return q;
}

static void no_memory(struct app *app, struct gpu *gpu)
{
	void *addr = NULL;

	gpu_device_use(gpu, 0);
	app_knob(app, "fail-alloc", 2);
	must(gpu_alloc(gpu, 0, LEN, &addr) == -ENOMEM && !addr, gpu,
	     "device memory is used up");
	must(strstr(gpu_error(gpu), "allocating 4096 bytes of GPU 0") != NULL, gpu,
	     "words");
	must(gpu_pinned_alloc(gpu, LEN, &addr) == -ENOMEM && !addr, gpu,
	     "pinned is used up");
	must(gpu_alloc(gpu, 0, LEN, &addr) == 0, gpu, "and then there is some");
	must(gpu_free(gpu, addr) == 0, gpu, "free");
	must(gpu_free(gpu, addr) == -EINVAL, gpu, "free of what is free");
	must(gpu_alloc(gpu, 0, 0, &addr) == -EINVAL, gpu, "nothing");
	must(gpu_alloc(gpu, 7, LEN, &addr) == -ENODEV, gpu, "no such device");
}

static void no_pinning(struct app *app, struct gpu *gpu)
{
	void *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct gpu_range r;

	app_knob(app, "fail-pin", 1);
	must(gpu_pinned_register(gpu, mem, LEN) == -ENOMEM, gpu, "pinning fails");
	must(gpu_pinned_register(gpu, mem, LEN) == 0, gpu, "pinning");
	must(gpu_query(gpu, mem, LEN, &r) == 0 && r.kind == GPU_MEM_PINNED && r.whole &&
		     r.base == (uintptr_t)mem,
	     gpu, "it is pinned");
	must(gpu_pinned_register(gpu, mem, LEN) == -EINVAL, gpu, "pinned twice");
	must(gpu_pinned_unregister(gpu, mem) == 0, gpu, "unpinning");
	must(gpu_pinned_unregister(gpu, mem) == -EINVAL, gpu, "unpinned twice");
	must(gpu_query(gpu, mem, LEN, &r) == 0 && r.kind == GPU_MEM_HOST, gpu,
	     "it is not");
	munmap(mem, LEN);
}

/* A stream that waits when the device fails: the host learns of it, and no call hangs. */
static void sticky(struct app *app, struct gpu *gpu)
{
	struct gpu_queue *q = queue_new(gpu);
	struct gate_words *words = NULL;
	struct gate gate;
	void *stream = NULL;

	must(gpu_pinned_alloc(gpu, sizeof(*words), (void **)&words) == 0, gpu, "words");
	must(gpu_stream_open(gpu, 0, &stream) == 0, gpu, "stream");
	must(gate_init(&gate, gpu, 0, words) == 0, gpu, "gate");
	must(gate_pass(&gate, stream, 1) == 0, gpu, "pass");
	must(gpu_queue_mark(q) == 0 && gpu_queue_sync(q, LIMIT) == 0, gpu, "all is well");
	must(gpu_device_error(gpu, 0) == 0, gpu, "and the device, too");
	app_knob(app, "error", 719);
	must(gpu_device_error(gpu, 0) == -EIO, gpu, "the device has failed");
	must(strstr(gpu_error(gpu), "CUDA_ERROR_LAUNCH_FAILED (719)") != NULL, gpu,
	     "words");
	must(gpu_queue_sync(q, LIMIT) == -EIO, gpu, "a queue says so");
	must(gpu_queue_mark(q) == -EIO, gpu, "and takes nothing");
	must(q->issued == 1 && gpu_queue_done(q, 1) && !gpu_queue_done(q, 2), gpu,
	     "marks");
	must(gate_pass(&gate, stream, 2) == -EIO, gpu, "nor does a stream");
}

/* Work on memory that was freed below it. */
static void gone(struct app *app, struct gpu *gpu)
{
	struct gpu_queue *q = queue_new(gpu);
	uint8_t *pin = NULL;
	uint64_t addr;
	int ret;

	app_device(app, 0);
	addr = app_alloc(app, LEN);
	must(gpu_pinned_alloc(gpu, LEN, (void **)&pin) == 0, gpu, "pinned");
	app_free(app, addr);
	/* A driver tells with the first call that returns after it knows, and a device
	 * may be as fast as the call that gives it the copy. */
	ret = gpu_copy(q, pin, (void *)(uintptr_t)addr, LEN);
	must(ret == 0 || ret == -EIO, gpu, "put on the queue");
	if (ret == 0)
		ret = gpu_queue_sync(q, LIMIT);
	must(ret == -EIO, gpu, "and fails there");
	must(strstr(gpu_error(gpu), "ILLEGAL_ADDRESS") != NULL, gpu, "in words");
}

/* A stream that is slow: a wait for it ends in time, and the work is done later. */
static void stalled(struct app *app, struct gpu *gpu)
{
	struct gpu_queue *q = queue_new(gpu);
	uint8_t *pin = NULL;

	must(gpu_pinned_alloc(gpu, LEN, (void **)&pin) == 0, gpu, "pinned");
	app_knob(app, "stall-ms", 300);
	must(gpu_fill(q, pin, 7, LEN) == 0 && gpu_queue_mark(q) == 0, gpu,
	     "put on the queue");
	must(gpu_queue_sync(q, 1000000) == -ETIMEDOUT, gpu, "not done in a millisecond");
	must(strstr(gpu_error(gpu), "1000 us") != NULL, gpu, "in words");
	must(gpu_queue_sync(q, LIMIT) == 0 && gpu_queue_done(q, 1) && pin[LEN - 1] == 7,
	     gpu, "but then");
}

/* Neither memory waits nor kernels: streams are not held, and queues still count. */
static void no_waits(struct app *app, struct gpu *gpu)
{
	struct gpu_queue *q = queue_new(gpu);
	struct gate_words *words = NULL;
	struct gate gate;

	(void)app;
	must(gpu->device[0].hold == GPU_HOLD_NONE, gpu, "found by trying");
	must(gpu_pinned_alloc(gpu, sizeof(*words), (void **)&words) == 0, gpu, "words");
	must(gate_init(&gate, gpu, 0, words) == -ENOSYS, gpu, "no gate");
	must(gpu_stream_words(gpu, 0, NULL,
			      &(struct gpu_word_op){.kind = GPU_WORD_WRITE,
						    .word = &words->opened},
			      1) == -ENOSYS,
	     gpu, "no steps");
	must(strstr(gpu_error(gpu), "no memory waits") != NULL, gpu, "in words");
	for (int i = 0; i < 5; i++)
		must(gpu_queue_mark(q) == 0, gpu, "mark");
	must(gpu_queue_sync(q, LIMIT) == 0 && gpu_queue_done(q, 5) &&
		     !gpu_queue_done(q, 6),
	     gpu, "five marks");
	must(gpu_queue_close(q) == 0, gpu, "close");
}

/* Without mapped pieces memory is the driver's, and everything else as before. */
static void no_pieces(struct app *app, struct gpu *gpu)
{
	struct gpu_ipc ipc;
	struct gpu_range r;
	void *addr = NULL;
	int fd = 5;

	(void)app;
	must(gpu_alloc(gpu, 0, LEN, &addr) == 0, gpu, "alloc");
	must(gpu_query(gpu, addr, LEN, &r) == 0 && r.ipc && !r.vmm && !r.fd, gpu,
	     "query");
	must(gpu_ipc_export(gpu, addr, &ipc, &fd) == 0 && fd == -1 &&
		     ipc.kind == GPU_IPC_HANDLE,
	     gpu, "export");
	must(gpu_free(gpu, addr) == 0, gpu, "free");
}

static void no_ipc(struct app *app, struct gpu *gpu)
{
	struct gpu_ipc ipc;
	uint64_t addr;
	int fd = 5;

	app_device(app, 0);
	addr = app_alloc(app, LEN);
	must(gpu_ipc_export(gpu, (void *)(uintptr_t)addr, &ipc, &fd) == -ENOSYS &&
		     fd == 5,
	     gpu, "export of what no handle fits");
	must(strstr(gpu_error(gpu), "did not ask for handles") != NULL, gpu, "in words");
	must(gpu_peer(gpu, 0, 1) == -ENOSYS, gpu, "devices that do not reach each other");
	must(gpu_peer(gpu, 0, 0) == 0, gpu, "each reaches itself");
	must(gpu_flush(gpu, 0) == 0 && gpu->device[0].flush == GPU_FLUSH_DRIVER, gpu,
	     "an older device is flushed");
}

static void no_dmabuf(struct app *app, struct gpu *gpu)
{
	struct gpu_dmabuf d;
	void *addr = NULL;

	(void)app;
	must(gpu_alloc(gpu, 1, LEN, &addr) == 0, gpu, "alloc on the second device");
	must(gpu_dmabuf_export(gpu, addr, LEN, &d) == -ENOSYS, gpu, "no DMA buffers");
	must(strstr(gpu_error(gpu), "exports no DMA buffers") != NULL, gpu, "in words");
	must(gpu_free(gpu, addr) == 0, gpu, "free");
}

static const struct {
	const char *what;
	const char *knobs;
	void (*run)(struct app *app, struct gpu *gpu);
} faults[] = {
	{"no memory left", "", no_memory},
	{"pinning that fails", "", no_pinning},
	{"a device that fails for good while a stream waits", "", sticky},
	{"memory freed below a copy", "", gone},
	{"a stream that stalls", "", stalled},
	{"memory waits that are refused", "memops=0", no_waits},
	{"memory waits that are not there", "memops=-1", no_waits},
	{"no mapped pieces", "vmm=0", no_pieces},
	{"no handles, no peers, an older device", "ipc=0,p2p=0,cc=80", no_ipc},
	{"no DMA buffers", "dmabuf=0", no_dmabuf},
};

static int child(size_t i)
{
	struct app *app;

	setenv("WEFT_MOCK", faults[i].knobs, 1);
	app = app_open();
	if (!app)
		return 1;
	faults[i].run(app, app_gpu(app));
	return failed;
}

int main(void)
{
	unsetenv("WEFT_GPU_HOLD");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		int status = -1;
		pid_t pid = tap_fork();

		if (pid == 0)
			_exit(child(i));
		tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0, "%s",
		       faults[i].what);
	}
	return tap_done();
}
