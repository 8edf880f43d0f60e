/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "gpu/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "gpu/gpu.h"

#define LIBRARY_NAME "libcuda.so.1"
/* 11.7: memory waits in their second shape, and DMA buffers. */
#define OLDEST 11070

/* A function of the driver: its name, the version that first had it in the shape that
 * driver.h declares, and where its address goes. */
struct row {
	const char *name;
	int version;
	size_t at;
	bool optional;
};

#define AT(member) offsetof(struct driver, member)

static const struct row rows[] = {
	{"cuInit", 2000, AT(init), false},
	{"cuDriverGetVersion", 2020, AT(driver_get_version), false},
	{"cuGetErrorName", 6000, AT(get_error_name), false},
	{"cuGetErrorString", 6000, AT(get_error_string), false},
	{"cuDeviceGet", 2000, AT(device_get), false},
	{"cuDeviceGetCount", 2000, AT(device_get_count), false},
	{"cuDeviceGetName", 2000, AT(device_get_name), false},
	{"cuDeviceGetUuid", 11040, AT(device_get_uuid), false},
	{"cuDeviceTotalMem", 3020, AT(device_total_mem), false},
	{"cuDeviceGetAttribute", 2000, AT(device_get_attribute), false},
	{"cuDeviceGetPCIBusId", 4010, AT(device_get_pci_bus_id), false},
	{"cuDeviceCanAccessPeer", 4000, AT(device_can_access_peer), false},
	{"cuDevicePrimaryCtxRetain", 7000, AT(primary_ctx_retain), false},
	{"cuDevicePrimaryCtxRelease", 11000, AT(primary_ctx_release), false},
	{"cuDevicePrimaryCtxGetState", 7000, AT(primary_ctx_get_state), false},
	{"cuCtxGetCurrent", 4000, AT(ctx_get_current), false},
	{"cuCtxSetCurrent", 4000, AT(ctx_set_current), false},
	{"cuCtxEnablePeerAccess", 4000, AT(ctx_enable_peer_access), false},
	{"cuThreadExchangeStreamCaptureMode", 10010, AT(thread_exchange_capture_mode),
	 false},

	{"cuMemAlloc", 3020, AT(mem_alloc), false},
	{"cuMemFree", 3020, AT(mem_free), false},
	{"cuMemHostAlloc", 2020, AT(mem_host_alloc), false},
	{"cuMemFreeHost", 2000, AT(mem_free_host), false},
	{"cuMemHostRegister", 6050, AT(mem_host_register), false},
	{"cuMemHostUnregister", 4000, AT(mem_host_unregister), false},
	{"cuMemHostGetDevicePointer", 3020, AT(mem_host_get_device_pointer), false},
	{"cuPointerGetAttributes", 7000, AT(pointer_get_attributes), false},
	{"cuPointerSetAttribute", 6000, AT(pointer_set_attribute), false},
	{"cuMemGetAddressRange", 3020, AT(mem_get_address_range), false},
	{"cuMemAddressReserve", 10020, AT(mem_address_reserve), false},
	{"cuMemAddressFree", 10020, AT(mem_address_free), false},
	{"cuMemCreate", 10020, AT(mem_create), false},
	{"cuMemRelease", 10020, AT(mem_release), false},
	{"cuMemMap", 10020, AT(mem_map), false},
	{"cuMemUnmap", 10020, AT(mem_unmap), false},
	{"cuMemSetAccess", 10020, AT(mem_set_access), false},
	{"cuMemGetAllocationGranularity", 10020, AT(mem_get_granularity), false},
	{"cuMemRetainAllocationHandle", 11000, AT(mem_retain_handle), false},
	{"cuMemExportToShareableHandle", 10020, AT(mem_export), false},
	{"cuMemImportFromShareableHandle", 10020, AT(mem_import), false},
	{"cuMemGetHandleForAddressRange", 11070, AT(mem_get_range_handle), true},
	{"cuIpcGetMemHandle", 4010, AT(ipc_get_mem_handle), false},
	{"cuIpcOpenMemHandle", 11000, AT(ipc_open_mem_handle), false},
	{"cuIpcCloseMemHandle", 4010, AT(ipc_close_mem_handle), false},
	{"cuFlushGPUDirectRDMAWrites", 11030, AT(flush_rdma_writes), true},

	{"cuStreamCreate", 2000, AT(stream_create), false},
	{"cuStreamDestroy", 4000, AT(stream_destroy), false},
	{"cuStreamQuery", 2000, AT(stream_query), false},
	{"cuStreamSynchronize", 2000, AT(stream_synchronize), false},
	{"cuStreamWaitEvent", 3020, AT(stream_wait_event), false},
	{"cuEventCreate", 2000, AT(event_create), false},
	{"cuEventDestroy", 4000, AT(event_destroy), false},
	{"cuEventRecord", 2000, AT(event_record), false},
	{"cuMemcpyAsync", 4000, AT(memcpy_async), false},
	{"cuMemcpy2DAsync", 3020, AT(memcpy_2d_async), false},
	{"cuMemsetD8Async", 3020, AT(memset_d8_async), false},
	{"cuStreamWriteValue64", 11070, AT(stream_write_value64), true},
	{"cuStreamBatchMemOp", 11070, AT(stream_batch_mem_op), true},
	{"cuLaunchHostFunc", 10000, AT(launch_host_func), false},
	{"cuStreamGetCaptureInfo", 11030, AT(stream_get_capture_info), false},
	{"cuUserObjectCreate", 11030, AT(user_object_create), false},
	{"cuGraphRetainUserObject", 11030, AT(graph_retain_user_object), false},

	{"cuModuleLoad", 2000, AT(module_load), false},
	{"cuModuleLoadData", 2000, AT(module_load_data), false},
	{"cuModuleUnload", 2000, AT(module_unload), false},
	{"cuModuleGetFunction", 2000, AT(module_get_function), false},
	{"cuFuncLoad", 12040, AT(func_load), true},
	{"cuLaunchKernel", 4000, AT(launch_kernel), false},
};

/* The driver's own lookup, in its two shapes. */
struct lookup {
	CUresult (*first)(const char *name, void **fn, int version, uint64_t flags);
	CUresult (*second)(const char *name, void **fn, int version, uint64_t flags,
			   int *status);
};

static void *look_up(const struct lookup *lookup, const struct row *row)
{
	void *fn = NULL;
	int status = 0;
	CUresult rc;

	if (lookup->second)
		rc = lookup->second(row->name, &fn, row->version, 0, &status);
	else
		rc = lookup->first(row->name, &fn, row->version, 0);
	return rc == CUDA_SUCCESS ? fn : NULL;
}

/* dlsym's result is an object's address; what lies there is a function. */
static void symbol(void *library, const char *name, void *fn)
{
	void *address = dlsym(library, name);

	memcpy(fn, &address, sizeof(address));
}

static int fill(struct driver *driver, char *why)
{
	struct lookup lookup;

	symbol(driver->library, "cuGetProcAddress_v2", &lookup.second);
	symbol(driver->library, "cuGetProcAddress", &lookup.first);
	if (!lookup.second && !lookup.first) {
		snprintf(why, GPU_WHY_LEN,
			 LIBRARY_NAME
			 " has no cuGetProcAddress: it is older than 11.3, and "
			 "%d.%d is needed. Install a newer driver.",
			 OLDEST / 1000, OLDEST % 1000 / 10);
		return -ENODEV;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *fn = look_up(&lookup, &rows[i]);

		if (!fn && !rows[i].optional) {
			snprintf(why, GPU_WHY_LEN,
				 LIBRARY_NAME
				 " has no %s of version %d.%d. Install a newer "
				 "driver (%d.%d or later).",
				 rows[i].name, rows[i].version / 1000,
				 rows[i].version % 1000 / 10, OLDEST / 1000,
				 OLDEST % 1000 / 10);
			return -ENODEV;
		}
		memcpy((char *)driver + rows[i].at, &fn, sizeof(fn));
	}
	return 0;
}

int driver_load(struct driver *driver, char *why)
{
	const char *name = NULL;
	CUresult rc;
	int ret;

	memset(driver, 0, sizeof(*driver));
	driver->library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
	if (!driver->library) {
		snprintf(why, GPU_WHY_LEN, "no CUDA driver: %s", dlerror());
		return -ENODEV;
	}
	ret = fill(driver, why);
	if (ret)
		return ret;
	rc = driver->driver_get_version(&driver->version);
	if (rc == CUDA_SUCCESS && driver->version < OLDEST) {
		snprintf(why, GPU_WHY_LEN,
			 "the CUDA driver is of version %d.%d, and %d.%d is needed. "
			 "Install "
			 "a newer driver.",
			 driver->version / 1000, driver->version % 1000 / 10,
			 OLDEST / 1000, OLDEST % 1000 / 10);
		return -ENODEV;
	}
	if (rc == CUDA_SUCCESS)
		rc = driver->init(0);
	if (rc != CUDA_SUCCESS) {
		if (driver->get_error_name(rc, &name) != CUDA_SUCCESS)
			name = NULL;
		snprintf(why, GPU_WHY_LEN,
			 "the CUDA driver does not start: cuInit gave %d (%s). Look at "
			 "nvidia-smi.",
			 rc, name ? name : "?");
		return -ENODEV;
	}
	return 0;
}
