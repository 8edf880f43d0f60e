/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "gpu/tests/app.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/driver.h"
#include "util/tap.h"

struct app {
	struct driver drv;
	bool mock;
	int (*set)(const char *knob, long value);
	CUresult (*alloc_managed)(CUdeviceptr *addr, size_t len, unsigned flags);
	CUresult (*begin)(CUstream stream, int mode);
	CUresult (*end)(CUstream stream, CUgraph *graph);
	CUresult (*instantiate)(CUgraphExec *exec, CUgraph graph,
				unsigned long long flags);
	CUresult (*launch)(CUgraphExec exec, CUstream stream);
	CUresult (*exec_destroy)(CUgraphExec exec);
	CUresult (*graph_destroy)(CUgraph graph);
};

static void must(struct app *app, CUresult rc, const char *what)
{
	const char *name = NULL;

	if (rc == CUDA_SUCCESS)
		return;
	app->drv.get_error_name(rc, &name);
	tap_diag("%s: %s (%d)", what, name ? name : "?", rc);
	exit(1);
}

static void symbol(void *library, const char *name, void *fn)
{
	void *address = dlsym(library, name);

	memcpy(fn, &address, sizeof(address));
}

/* A function that only applications call, as the driver's own lookup has it. */
static void extra(struct app *app, const char *name, int version, void *fn)
{
	CUresult (*look_up)(const char *name, void **fn, int version, uint64_t flags,
			    int *status);
	int status;

	symbol(app->drv.library, "cuGetProcAddress_v2", &look_up);
	must(app, look_up(name, fn, version, 0, &status), name);
}

static void *mock_load(void)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];
	void *mock;

	snprintf(path, sizeof(path), "%s/gpu/mock/.libs/libcuda.so.1",
		 build ? build : ".");
	mock = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!mock) {
		tap_diag("no stand-in: %s", dlerror());
		exit(1);
	}
	return mock;
}

void app_mock_load(void)
{
	mock_load();
}

struct app *app_open(void)
{
	const char *real = getenv("WEFT_TEST_GPU");
	static struct app one; /* a driver is loaded once */
	struct app *app = &one;
	char why[GPU_WHY_LEN];

	if (!real || strcmp(real, "1") != 0) {
		symbol(mock_load(), "weft_mock_set", &app->set);
		app->mock = true;
	}
	if (driver_load(&app->drv, why) != 0) {
		tap_diag("%s", why);
		return NULL;
	}
	extra(app, "cuMemAllocManaged", 6000, &app->alloc_managed);
	extra(app, "cuStreamBeginCapture", 10010, &app->begin);
	extra(app, "cuStreamEndCapture", 10000, &app->end);
	extra(app, "cuGraphInstantiateWithFlags", 11040, &app->instantiate);
	extra(app, "cuGraphLaunch", 10000, &app->launch);
	extra(app, "cuGraphExecDestroy", 10000, &app->exec_destroy);
	extra(app, "cuGraphDestroy", 10000, &app->graph_destroy);
	return app;
}

bool app_on_mock(const struct app *app)
{
	return app->mock;
}

void app_knob(struct app *app, const char *knob, long value)
{
	if (app->set && app->set(knob, value) == 0)
		return;
	tap_diag("there is no knob %s", knob);
	exit(1);
}

struct gpu *app_gpu(struct app *app)
{
	const char *build = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];
	struct gpu *gpu = NULL;

	(void)app;
	snprintf(path, sizeof(path), "%s/.libs/libweft-gpu.so", build ? build : ".");
	if (gpu_open(&(struct gpu_opts){.library = path}, &gpu) != 0 ||
	    strcmp(gpu->name, "cuda") != 0) {
		tap_diag("no backend: %s", gpu ? gpu->why : "no memory");
		exit(1);
	}
	return gpu;
}

void app_device(struct app *app, int device)
{
	CUcontext ctx;
	CUdevice dev;

	must(app, app->drv.device_get(&dev, device), "cuDeviceGet");
	must(app, app->drv.primary_ctx_retain(&ctx, dev), "cuDevicePrimaryCtxRetain");
	must(app, app->drv.ctx_set_current(ctx), "cuCtxSetCurrent");
}

uint64_t app_alloc(struct app *app, uint64_t len)
{
	CUdeviceptr addr = 0;

	must(app, app->drv.mem_alloc(&addr, len), "cuMemAlloc");
	return addr;
}

void app_free(struct app *app, uint64_t addr)
{
	must(app, app->drv.mem_free(addr), "cuMemFree");
}

uint64_t app_managed(struct app *app, uint64_t len)
{
	CUdeviceptr addr = 0;

	must(app, app->alloc_managed(&addr, len, 1), "cuMemAllocManaged");
	return addr;
}

static void map_one(struct app *app, int device, uint64_t addr, uint64_t len,
		    bool exportable)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	CUmemAccessDesc desc = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
				CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

	memset(&prop, 0, sizeof(prop));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	prop.requestedHandleTypes =
		exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0;
	prop.allocFlags.gpuDirectRDMACapable = 1;
	must(app, app->drv.mem_create(&handle, len, &prop, 0), "cuMemCreate");
	must(app, app->drv.mem_map(addr, len, 0, handle, 0), "cuMemMap");
	must(app, app->drv.mem_release(handle), "cuMemRelease");
	must(app, app->drv.mem_set_access(addr, len, &desc, 1), "cuMemSetAccess");
}

uint64_t app_map(struct app *app, int device, uint64_t len, int pieces, bool exportable)
{
	CUdeviceptr addr = 0;

	must(app, app->drv.mem_address_reserve(&addr, len * (uint64_t)pieces, 0, 0, 0),
	     "cuMemAddressReserve");
	for (int i = 0; i < pieces; i++)
		map_one(app, device, addr + len * (uint64_t)i, len, exportable);
	return addr;
}

void app_unmap(struct app *app, uint64_t addr, uint64_t len, int pieces)
{
	must(app, app->drv.mem_unmap(addr, len * (uint64_t)pieces), "cuMemUnmap");
	must(app, app->drv.mem_address_free(addr, len * (uint64_t)pieces),
	     "cuMemAddressFree");
}

void app_remap(struct app *app, int device, uint64_t addr, uint64_t len, int at,
	       bool exportable)
{
	must(app, app->drv.mem_unmap(addr + len * (uint64_t)at, len), "cuMemUnmap");
	map_one(app, device, addr + len * (uint64_t)at, len, exportable);
}

void app_capture_begin(struct app *app, void *stream, int mode)
{
	must(app, app->begin(stream, mode), "cuStreamBeginCapture");
}

void *app_capture_end(struct app *app, void *stream)
{
	CUgraphExec exec = NULL;
	CUgraph graph = NULL;

	if (app->end(stream, &graph) != CUDA_SUCCESS || !graph)
		return NULL;
	must(app, app->instantiate(&exec, graph, 0), "cuGraphInstantiateWithFlags");
	must(app, app->graph_destroy(graph), "cuGraphDestroy");
	return exec;
}

void app_graph_launch(struct app *app, void *graph, void *stream)
{
	must(app, app->launch(graph, stream), "cuGraphLaunch");
}

void app_graph_free(struct app *app, void *graph)
{
	must(app, app->exec_destroy(graph), "cuGraphExecDestroy");
}
