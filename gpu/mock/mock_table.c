/* SPDX-License-Identifier: BSD-2-Clause */
/* Which entry points there are. */
#include <string.h>

#include "gpu/mock/mock_api.h"

typedef void any_fn(void);

/* The version that first had each in the shape that is here. */
static const struct {
	const char *name;
	int version;
	any_fn *fn;
} table[] = {
	{"cuInit", 2000, (any_fn *)mock_init},
	{"cuDriverGetVersion", 2020, (any_fn *)mock_driver_get_version},
	{"cuGetErrorName", 6000, (any_fn *)mock_get_error_name},
	{"cuGetErrorString", 6000, (any_fn *)mock_get_error_string},
	{"cuDeviceGet", 2000, (any_fn *)mock_device_get},
	{"cuDeviceGetCount", 2000, (any_fn *)mock_device_get_count},
	{"cuDeviceGetName", 2000, (any_fn *)mock_device_get_name},
	{"cuDeviceGetUuid", 11040, (any_fn *)mock_device_get_uuid},
	{"cuDeviceTotalMem", 3020, (any_fn *)mock_device_total_mem},
	{"cuDeviceGetAttribute", 2000, (any_fn *)mock_device_get_attribute},
	{"cuDeviceGetPCIBusId", 4010, (any_fn *)mock_device_get_pci_bus_id},
	{"cuDeviceCanAccessPeer", 4000, (any_fn *)mock_device_can_access_peer},
	{"cuDevicePrimaryCtxRetain", 7000, (any_fn *)mock_primary_ctx_retain},
	{"cuDevicePrimaryCtxRelease", 11000, (any_fn *)mock_primary_ctx_release},
	{"cuDevicePrimaryCtxGetState", 7000, (any_fn *)mock_primary_ctx_get_state},
	{"cuCtxGetCurrent", 4000, (any_fn *)mock_ctx_get_current},
	{"cuCtxSetCurrent", 4000, (any_fn *)mock_ctx_set_current},
	{"cuCtxEnablePeerAccess", 4000, (any_fn *)mock_ctx_enable_peer_access},
	{"cuThreadExchangeStreamCaptureMode", 10010,
	 (any_fn *)mock_thread_exchange_capture_mode},
	{"cuMemAlloc", 3020, (any_fn *)mock_mem_alloc},
	{"cuMemFree", 3020, (any_fn *)mock_mem_free},
	{"cuMemHostAlloc", 2020, (any_fn *)mock_mem_host_alloc},
	{"cuMemFreeHost", 2000, (any_fn *)mock_mem_free_host},
	{"cuMemHostRegister", 6050, (any_fn *)mock_mem_host_register},
	{"cuMemHostUnregister", 4000, (any_fn *)mock_mem_host_unregister},
	{"cuMemHostGetDevicePointer", 3020, (any_fn *)mock_mem_host_get_device_pointer},
	{"cuPointerGetAttributes", 7000, (any_fn *)mock_pointer_get_attributes},
	{"cuPointerSetAttribute", 6000, (any_fn *)mock_pointer_set_attribute},
	{"cuMemGetAddressRange", 3020, (any_fn *)mock_mem_get_address_range},
	{"cuMemAddressReserve", 10020, (any_fn *)mock_mem_address_reserve},
	{"cuMemAddressFree", 10020, (any_fn *)mock_mem_address_free},
	{"cuMemCreate", 10020, (any_fn *)mock_mem_create},
	{"cuMemRelease", 10020, (any_fn *)mock_mem_release},
	{"cuMemMap", 10020, (any_fn *)mock_mem_map},
	{"cuMemUnmap", 10020, (any_fn *)mock_mem_unmap},
	{"cuMemSetAccess", 10020, (any_fn *)mock_mem_set_access},
	{"cuMemGetAllocationGranularity", 10020, (any_fn *)mock_mem_get_granularity},
	{"cuMemRetainAllocationHandle", 11000, (any_fn *)mock_mem_retain_handle},
	{"cuMemExportToShareableHandle", 10020, (any_fn *)mock_mem_export},
	{"cuMemImportFromShareableHandle", 10020, (any_fn *)mock_mem_import},
	{"cuMemGetHandleForAddressRange", 11070, (any_fn *)mock_mem_get_range_handle},
	{"cuIpcGetMemHandle", 4010, (any_fn *)mock_ipc_get_mem_handle},
	{"cuIpcOpenMemHandle", 11000, (any_fn *)mock_ipc_open_mem_handle},
	{"cuIpcCloseMemHandle", 4010, (any_fn *)mock_ipc_close_mem_handle},
	{"cuFlushGPUDirectRDMAWrites", 11030, (any_fn *)mock_flush_rdma_writes},
	{"cuStreamCreate", 2000, (any_fn *)mock_stream_create},
	{"cuStreamDestroy", 4000, (any_fn *)mock_stream_destroy},
	{"cuStreamQuery", 2000, (any_fn *)mock_stream_query},
	{"cuStreamSynchronize", 2000, (any_fn *)mock_stream_synchronize},
	{"cuStreamWaitEvent", 3020, (any_fn *)mock_stream_wait_event},
	{"cuEventCreate", 2000, (any_fn *)mock_event_create},
	{"cuEventDestroy", 4000, (any_fn *)mock_event_destroy},
	{"cuEventRecord", 2000, (any_fn *)mock_event_record},
	{"cuMemcpyAsync", 4000, (any_fn *)mock_memcpy_async},
	{"cuMemcpy2DAsync", 3020, (any_fn *)mock_memcpy_2d_async},
	{"cuMemsetD8Async", 3020, (any_fn *)mock_memset_d8_async},
	{"cuStreamWriteValue64", 11070, (any_fn *)mock_stream_write_value64},
	{"cuStreamBatchMemOp", 11070, (any_fn *)mock_stream_batch_mem_op},
	{"cuLaunchHostFunc", 10000, (any_fn *)mock_launch_host_func},
	{"cuStreamGetCaptureInfo", 11030, (any_fn *)mock_stream_get_capture_info},
	{"cuUserObjectCreate", 11030, (any_fn *)mock_user_object_create},
	{"cuGraphRetainUserObject", 11030, (any_fn *)mock_graph_retain_user_object},
	{"cuModuleLoad", 2000, (any_fn *)mock_module_load},
	{"cuModuleLoadData", 2000, (any_fn *)mock_module_load_data},
	{"cuModuleUnload", 2000, (any_fn *)mock_module_unload},
	{"cuModuleGetFunction", 2000, (any_fn *)mock_module_get_function},
	{"cuFuncLoad", 12040, (any_fn *)mock_func_load},
	{"cuLaunchKernel", 4000, (any_fn *)mock_launch_kernel},
	{"cuMemAllocManaged", 6000, (any_fn *)mock_mem_alloc_managed},
	{"cuEventQuery", 2000, (any_fn *)mock_event_query},
	{"cuStreamBeginCapture", 10010, (any_fn *)mock_stream_begin_capture},
	{"cuStreamEndCapture", 10000, (any_fn *)mock_stream_end_capture},
	{"cuGraphInstantiateWithFlags", 11040, (any_fn *)mock_graph_instantiate},
	{"cuGraphLaunch", 10000, (any_fn *)mock_graph_launch},
	{"cuGraphExecDestroy", 10000, (any_fn *)mock_graph_exec_destroy},
	{"cuGraphDestroy", 10000, (any_fn *)mock_graph_destroy},
};

CUresult mock_look_up(const char *name, void **fn, int version)
{
	long have;

	mock_init(0); /* knobs count from the first question on */
	pthread_mutex_lock(&mock.lock);
	have = mock_knob(MOCK_DRIVER);
	pthread_mutex_unlock(&mock.lock);
	*fn = NULL;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].name, name) != 0 || version < table[i].version ||
		    have < table[i].version)
			continue;
		memcpy(fn, &table[i].fn, sizeof(*fn));
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}
