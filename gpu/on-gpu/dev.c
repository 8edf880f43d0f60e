/* SPDX-License-Identifier: BSD-2-Clause */
/* See dev.h. */
#include "gpu/on-gpu/dev.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FILES 4

static cudaLibrary_t library[FILES];
static int files;
static cudaStream_t stream;
static cudaEvent_t event[2];

static void must(cudaError_t rc, const char *what)
{
	if (rc == cudaSuccess)
		return;
	printf("Bail out! %s: %s (%s)\n", what, cudaGetErrorString(rc),
	       cudaGetErrorName(rc));
	fflush(stdout);
	exit(99);
}

void dev_load(const char *file)
{
	if (files == FILES) {
		printf("Bail out! more than %d files of kernels\n", FILES);
		exit(99);
	}
	must(cudaLibraryLoadFromFile(&library[files++], file, NULL, NULL, 0, NULL, NULL,
				     0),
	     file);
}

void dev_open(struct dev *dev, const char *file)
{
	struct cudaDeviceProp prop;

	must(cudaSetDevice(0), "taking device 0");
	must(cudaGetDeviceProperties(&prop, 0), "properties of device 0");
	snprintf(dev->name, sizeof(dev->name), "%s", prop.name);
	dev->processors = prop.multiProcessorCount;
	dev->major = prop.major;
	dev->minor = prop.minor;
	must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "a stream");
	must(cudaEventCreate(&event[0]), "an event");
	must(cudaEventCreate(&event[1]), "an event");
	dev_load(file);
}

void *dev_alloc(size_t len)
{
	void *p;

	must(cudaMalloc(&p, len), "memory of the device");
	return p;
}

void *dev_pinned(size_t len)
{
	void *p;

	must(cudaHostAlloc(&p, len, cudaHostAllocMapped | cudaHostAllocPortable),
	     "pinned memory");
	memset(p, 0, len);
	return p;
}

void dev_free(void *p)
{
	struct cudaPointerAttributes a;

	must(cudaPointerGetAttributes(&a, p), "whose memory it is");
	must(a.type == cudaMemoryTypeHost ? cudaFreeHost(p) : cudaFree(p), "free");
}

void dev_copy(void *dst, const void *src, size_t len)
{
	must(cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, stream), "copy");
	dev_sync();
}

void dev_fill(void *dst, int byte, size_t len)
{
	must(cudaMemsetAsync(dst, byte, len, stream), "fill");
	dev_sync();
}

struct dev_kernel *dev_kernel(const char *symbol)
{
	cudaKernel_t k;

	for (int i = 0; i < files; i++) {
		if (cudaLibraryGetKernel(&k, library[i], symbol) == cudaSuccess)
			return (struct dev_kernel *)k;
	}
	return NULL;
}

void dev_launch(struct dev_kernel *kernel, uint32_t blocks, uint32_t threads, void **args)
{
	const dim3 grid = {blocks, 1, 1}, block = {threads, 1, 1};

	must(cudaLaunchKernel((const void *)kernel, grid, block, args, 0, stream),
	     "launch");
}

void dev_copy_start(void *dst, const void *src, size_t len)
{
	must(cudaMemcpyAsync(dst, src, len, cudaMemcpyDeviceToDevice, stream), "copy");
}

void dev_sync(void)
{
	must(cudaStreamSynchronize(stream), "waiting for the stream");
}

bool dev_idle(void)
{
	const cudaError_t rc = cudaStreamQuery(stream);

	if (rc != cudaErrorNotReady)
		must(rc, "the stream");
	return rc == cudaSuccess;
}

static void *driver_call(const char *name)
{
	enum cudaDriverEntryPointQueryResult found;
	void *fn = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &fn, 12000, cudaEnableDefault,
					     &found) != cudaSuccess ||
	    found != cudaDriverEntryPointSuccess)
		return NULL;
	return fn;
}

bool dev_wait_start(uint64_t *word, uint64_t value)
{
	CUresult (*call)(CUstream, CUdeviceptr, cuuint64_t, unsigned) =
		(CUresult(*)(CUstream, CUdeviceptr, cuuint64_t, unsigned))driver_call(
			"cuStreamWaitValue64");

	return call && call((CUstream)stream, (CUdeviceptr)(uintptr_t)word, value,
			    CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS;
}

bool dev_write_start(uint64_t *word, uint64_t value)
{
	CUresult (*call)(CUstream, CUdeviceptr, cuuint64_t, unsigned) =
		(CUresult(*)(CUstream, CUdeviceptr, cuuint64_t, unsigned))driver_call(
			"cuStreamWriteValue64");

	return call && call((CUstream)stream, (CUdeviceptr)(uintptr_t)word, value,
			    CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
}

void dev_timer_start(void)
{
	must(cudaEventRecord(event[0], stream), "an event");
}

double dev_timer_stop(void)
{
	float ms;

	must(cudaEventRecord(event[1], stream), "an event");
	dev_sync();
	must(cudaEventElapsedTime(&ms, event[0], event[1]), "a time");
	return ms * 1e-3;
}

double dev_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double dev_percentile(double *v, size_t n, double share)
{
	qsort(v, n, sizeof(*v), compare);
	return v[(size_t)((double)(n - 1) * share)];
}

void dev_row(const char *what, const char *got, const char *floor, const char *target)
{
	printf("|%s|%s|%s|%s\n", what, got, floor, target);
	fflush(stdout);
}
