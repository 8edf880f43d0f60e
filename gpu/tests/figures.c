/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the calls of gpu.h cost on a device: one line for each, median and 99th
 * percentile. No test: run by hand, or by the script for GPU machines. On the stand-in it
 * shows that it runs and nothing else.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/gate.h"
#include "gpu/tests/app.h"
#include "util/fd.h"

#define MANY 2000
#define BIG  (256ull << 20)

static struct gpu *gpu;
static struct gpu_queue *queue;
static double took[MANY]; /* us */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void show(const char *what, int count)
{
	qsort(took, (size_t)count, sizeof(took[0]), by_value);
	printf("%-44s %12.3f %12.3f  us, %d times\n", what, took[count / 2],
	       took[count * 99 / 100], count);
	fflush(stdout);
}

static void must(int ret, const char *what)
{
	if (ret == 0)
		return;
	printf("%s: %d, %s\n", what, ret, gpu ? gpu_error(gpu) : "");
	exit(1);
}

static void until(uint64_t mark)
{
	const double start = now_us();

	while (!gpu_queue_done(queue, mark)) {
		if (now_us() - start > 60e6)
			must(gpu_queue_sync(queue, 0),
			     "a queue that was not done in a minute");
	}
}

static void queries(void *dev, void *pin)
{
	struct gpu_range r;
	struct gpu_dmabuf d;
	int host;

	for (int i = 0; i < MANY; i++) {
		const double start = now_us();

		must(gpu_query(gpu, dev, 1, &r), "query");
		took[i] = now_us() - start;
	}
	show("query of device memory", MANY);
	for (int i = 0; i < MANY; i++) {
		const double start = now_us();

		must(gpu_query(gpu, pin, 1, &r), "query");
		took[i] = now_us() - start;
	}
	show("query of pinned memory", MANY);
	for (int i = 0; i < MANY; i++) {
		const double start = now_us();

		must(gpu_query(gpu, &host, 1, &r), "query");
		took[i] = now_us() - start;
	}
	show("query of host memory", MANY);
	if (!gpu->device[0].dmabuf) {
		printf("no DMA buffers on this device\n");
		return;
	}
	for (int i = 0; i < 100; i++) {
		const double start = now_us();

		if (gpu_dmabuf_export(gpu, dev, BIG, &d) != 0) {
			printf("DMA buffer: %s\n", gpu_error(gpu));
			return;
		}
		took[i] = now_us() - start;
		close(d.fd);
	}
	show(d.pcie ? "DMA buffer of 256 MiB, mapping of the bus"
		    : "DMA buffer of 256 MiB",
	     100);
}

static void allocations(void)
{
	void *mem = NULL;

	for (int i = 0; i < 50; i++) {
		const double start = now_us();

		must(gpu_alloc(gpu, 0, 2u << 20, &mem), "alloc");
		took[i] = now_us() - start;
		must(gpu_free(gpu, mem), "free");
	}
	show("allocation of 2 MiB of the device", 50);
	for (int i = 0; i < 50; i++) {
		const double start = now_us();

		must(gpu_pinned_alloc(gpu, 1u << 20, &mem), "pinned");
		took[i] = now_us() - start;
		must(gpu_pinned_free(gpu, mem), "free");
	}
	show("allocation of 1 MiB of pinned memory", 50);
	mem = aligned_alloc(1u << 21, 64u << 20);
	memset(mem, 1, 64u << 20);
	for (int i = 0; i < 10; i++) {
		const double start = now_us();

		must(gpu_pinned_register(gpu, mem, 64u << 20), "pin");
		took[i] = now_us() - start;
		must(gpu_pinned_unregister(gpu, mem), "unpin");
	}
	show("pinning of 64 MiB", 10);
	free(mem);
}

static void copies(const char *what, void *dst, const void *src, uint64_t most)
{
	static const uint64_t sizes[] = {8, 64u << 10, 1u << 20, BIG};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		const uint64_t len = sizes[s] < most ? sizes[s] : most;
		const int count = len > 1u << 20 ? 10 : 500;
		char line[96];

		for (int i = 0; i < count; i++) {
			const double start = now_us();

			must(gpu_copy(queue, dst, src, len), "copy");
			must(gpu_queue_mark(queue), "mark");
			until(queue->issued);
			took[i] = now_us() - start;
		}
		qsort(took, (size_t)count, sizeof(took[0]), by_value);
		snprintf(line, sizeof(line), "copy %s, %llu bytes: %.1f GB/s", what,
			 (unsigned long long)len, (double)len / took[count / 2] / 1e3);
		show(line, count);
	}
}

/* From the host's word to the word that the stream writes next, by whatever holds it. */
static void holds(void)
{
	static const char *const names[] = {"nothing", "memory waits", "kernel"};
	struct gate_words *words = NULL;
	void *stream = NULL;
	struct gate gate;
	char line[64];
	static double put[MANY];

	if (gpu->device[0].hold == GPU_HOLD_NONE) {
		printf("streams are not held: %s\n", gpu->kernels_why);
		return;
	}
	must(gpu_pinned_alloc(gpu, 2 * sizeof(*words), (void **)&words), "words");
	must(gpu_stream_open(gpu, 0, &stream), "stream");
	must(gate_init(&gate, gpu, 0, words), "gate");
	for (uint64_t n = 1; n <= MANY; n++) {
		const struct gpu_word_op left = {
			.kind = GPU_WORD_WRITE, .word = &words[1].arrived, .value = n};
		double start = now_us();

		must(gate_pass(&gate, stream, n), "pass");
		put[n - 1] = now_us() - start;
		must(gpu_stream_words(gpu, 0, stream, &left, 1), "word");
		while (gate_arrived(&gate) < n)
			;
		/* The next step is on the device by then. */
		for (start = now_us(); now_us() - start < 20;)
			;
		start = now_us();
		gate_open(&gate, n);
		while (atomic_load_explicit(&words[1].arrived, memory_order_acquire) < n)
			;
		took[n - 1] = now_us() - start;
	}
	snprintf(line, sizeof(line), "hold by %s, opened to next word",
		 names[gpu->device[0].hold]);
	show(line, MANY);
	memcpy(took, put, sizeof(took));
	show("putting a passage on a stream", MANY);
	must(gpu_stream_close(gpu, 0, stream), "close");
	must(gpu_pinned_free(gpu, words), "free");
}

/* A child that exports and waits to be told that it can go. */
static int exporter(int sock)
{
	struct app *app = app_open();
	struct gpu_ipc ipc;
	char go;
	int fd;

	if (!app)
		return 1;
	gpu = app_gpu(app);
	app_device(app, 0);
	for (int i = 0; i < 20; i++) {
		const uint64_t addr = app_alloc(app, BIG / 8);

		must(gpu_ipc_export(gpu, (void *)(uintptr_t)addr, &ipc, &fd), "export");
		if (fd_write_all(sock, &ipc, sizeof(ipc)))
			return 1;
	}
	return fd_read_all(sock, &go, 1) != 0;
}

static void imports(int sock)
{
	static struct gpu_ipc ipc[20];
	void *base[20];

	for (int i = 0; i < 20; i++)
		must(fd_read_all(sock, &ipc[i], sizeof(ipc[i])),
		     "what the other exports");
	for (int i = 0; i < 20; i++) {
		const double start = now_us();

		must(gpu_ipc_import(gpu, 0, &ipc[i], -1, &base[i]), "import");
		took[i] = now_us() - start;
	}
	show("import of 32 MiB of another process, first", 20);
	for (int i = 0; i < 20; i++) {
		const double start = now_us();

		must(gpu_ipc_import(gpu, 0, &ipc[i], -1, &base[i]), "import");
		took[i] = now_us() - start;
		must(gpu_ipc_release(gpu, base[i]), "release");
	}
	show("import of the same again", 20);
	copies("of another process's memory", base[0], base[1], BIG / 8);
	for (int i = 0; i < 20; i++)
		must(gpu_ipc_release(gpu, base[i]), "release");
}

int main(void)
{
	void *dev[2], *pin[2];
	struct app *app;
	double start;
	int pair[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return 1;
	child = fork();
	if (child == 0) {
		close(pair[0]);
		_exit(exporter(pair[1]));
	}
	close(pair[1]);
	app = app_open();
	if (!app)
		return 1;
	start = now_us();
	gpu = app_gpu(app);
	printf("%-44s %12.0f us\n", "opening the backend", now_us() - start);
	start = now_us();
	must(gpu_device_use(gpu, 0), "use");
	printf("%-44s %12.0f us\n", "preparing the device", now_us() - start);
	printf("%s, %s, hold %d, flush %d, dmabuf %d, rdma %d, vmm %d, kernels %d %s\n",
	       gpu->device[0].name, gpu->why, gpu->device[0].hold, gpu->device[0].flush,
	       gpu->device[0].dmabuf, gpu->device[0].rdma, gpu->device[0].vmm,
	       gpu->device[0].kernels, gpu->kernels_why);
	must(gpu_queue_open(gpu, 0, &queue), "queue");
	for (int i = 0; i < 2; i++) {
		must(gpu_alloc(gpu, 0, BIG, &dev[i]), "alloc");
		must(gpu_pinned_alloc(gpu, BIG, &pin[i]), "pinned");
	}
	printf("%-44s %12s %12s\n", "", "median", "p99");
	queries(dev[0], pin[0]);
	allocations();
	holds();
	copies("on the device", dev[0], dev[1], BIG);
	copies("to the device", dev[0], pin[0], BIG);
	copies("to the host", pin[1], dev[1], BIG);
	imports(pair[0]);
	close(pair[0]);
	waitpid(child, NULL, 0);
	return 0;
}
