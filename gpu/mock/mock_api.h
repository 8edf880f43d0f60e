/* SPDX-License-Identifier: BSD-2-Clause */
/* Every entry point, under the name of its place in struct driver, and those that only
 * applications call. */
#ifndef WEFT_GPU_MOCK_MOCK_API_H
#define WEFT_GPU_MOCK_MOCK_API_H

#include "gpu/mock/mock_int.h"

/* The reserved range that has an address, where there is one. Under the lock. */
void mock_reserved_range(uintptr_t addr, uintptr_t *start, size_t *len);

CUresult mock_init(unsigned flags);
CUresult mock_driver_get_version(int *version);
CUresult mock_get_error_name(CUresult error, const char **name);
CUresult mock_get_error_string(CUresult error, const char **text);
CUresult mock_device_get(CUdevice *device, int ordinal);
CUresult mock_device_get_count(int *count);
CUresult mock_device_get_name(char *name, int len, CUdevice device);
CUresult mock_device_get_uuid(CUuuid *uuid, CUdevice device);
CUresult mock_device_total_mem(size_t *bytes, CUdevice device);
CUresult mock_device_get_attribute(int *value, int attribute, CUdevice device);
CUresult mock_device_get_pci_bus_id(char *id, int len, CUdevice device);
CUresult mock_device_can_access_peer(int *can, CUdevice device, CUdevice peer);
CUresult mock_primary_ctx_retain(CUcontext *ctx, CUdevice device);
CUresult mock_primary_ctx_release(CUdevice device);
CUresult mock_primary_ctx_get_state(CUdevice device, unsigned *flags, int *active);
CUresult mock_ctx_get_current(CUcontext *ctx);
CUresult mock_ctx_set_current(CUcontext ctx);
CUresult mock_ctx_enable_peer_access(CUcontext peer, unsigned flags);
CUresult mock_thread_exchange_capture_mode(int *mode);
CUresult mock_mem_alloc(CUdeviceptr *addr, size_t len);
CUresult mock_mem_free(CUdeviceptr addr);
CUresult mock_mem_host_alloc(void **addr, size_t len, unsigned flags);
CUresult mock_mem_free_host(void *addr);
CUresult mock_mem_host_register(void *addr, size_t len, unsigned flags);
CUresult mock_mem_host_unregister(void *addr);
CUresult mock_mem_host_get_device_pointer(CUdeviceptr *dev, void *host, unsigned flags);
CUresult mock_pointer_get_attributes(unsigned count, int *attributes, void **data,
				     CUdeviceptr addr);
CUresult mock_pointer_set_attribute(const void *value, int attribute, CUdeviceptr addr);
CUresult mock_mem_get_address_range(CUdeviceptr *base, size_t *len, CUdeviceptr addr);
CUresult mock_mem_address_reserve(CUdeviceptr *addr, size_t len, size_t align,
				  CUdeviceptr hint, unsigned long long flags);
CUresult mock_mem_address_free(CUdeviceptr addr, size_t len);
CUresult mock_mem_create(CUmemGenericAllocationHandle *handle, size_t len,
			 const CUmemAllocationProp *prop, unsigned long long flags);
CUresult mock_mem_release(CUmemGenericAllocationHandle handle);
CUresult mock_mem_map(CUdeviceptr addr, size_t len, size_t offset,
		      CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult mock_mem_unmap(CUdeviceptr addr, size_t len);
CUresult mock_mem_set_access(CUdeviceptr addr, size_t len, const CUmemAccessDesc *desc,
			     size_t count);
CUresult mock_mem_get_granularity(size_t *granularity, const CUmemAllocationProp *prop,
				  int option);
CUresult mock_mem_retain_handle(CUmemGenericAllocationHandle *handle, void *addr);
CUresult mock_mem_export(void *shareable, CUmemGenericAllocationHandle handle, int type,
			 unsigned long long flags);
CUresult mock_mem_import(CUmemGenericAllocationHandle *handle, void *shareable, int type);
CUresult mock_mem_get_range_handle(void *handle, CUdeviceptr addr, size_t len, int type,
				   unsigned long long flags);
CUresult mock_ipc_get_mem_handle(CUipcMemHandle *handle, CUdeviceptr addr);
CUresult mock_ipc_open_mem_handle(CUdeviceptr *addr, CUipcMemHandle handle,
				  unsigned flags);
CUresult mock_ipc_close_mem_handle(CUdeviceptr addr);
CUresult mock_flush_rdma_writes(int target, int scope);
CUresult mock_stream_create(CUstream *stream, unsigned flags);
CUresult mock_stream_destroy(CUstream stream);
CUresult mock_stream_query(CUstream stream);
CUresult mock_stream_synchronize(CUstream stream);
CUresult mock_stream_wait_event(CUstream stream, CUevent event, unsigned flags);
CUresult mock_event_create(CUevent *event, unsigned flags);
CUresult mock_event_destroy(CUevent event);
CUresult mock_event_record(CUevent event, CUstream stream);
CUresult mock_memcpy_async(CUdeviceptr dst, CUdeviceptr src, size_t len, CUstream stream);
CUresult mock_memcpy_2d_async(const CUDA_MEMCPY2D *copy, CUstream stream);
CUresult mock_memset_d8_async(CUdeviceptr dst, unsigned char byte, size_t len,
			      CUstream stream);
CUresult mock_stream_write_value64(CUstream stream, CUdeviceptr addr, uint64_t value,
				   unsigned flags);
CUresult mock_stream_batch_mem_op(CUstream stream, unsigned count,
				  CUstreamBatchMemOpParams *ops, unsigned flags);
CUresult mock_launch_host_func(CUstream stream, CUhostFn fn, void *arg);
CUresult mock_stream_get_capture_info(CUstream stream, int *status, uint64_t *id,
				      CUgraph *graph, const CUgraphNode **deps,
				      size_t *count);
CUresult mock_user_object_create(CUuserObject *object, void *ptr, CUhostFn destroy,
				 unsigned count, unsigned flags);
CUresult mock_graph_retain_user_object(CUgraph graph, CUuserObject object, unsigned count,
				       unsigned flags);
CUresult mock_module_load(CUmodule *module, const char *file);
CUresult mock_module_load_data(CUmodule *module, const void *image);
CUresult mock_module_unload(CUmodule module);
CUresult mock_module_get_function(CUfunction *function, CUmodule module,
				  const char *name);
CUresult mock_func_load(CUfunction function);
CUresult mock_launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y,
			    unsigned grid_z, unsigned block_x, unsigned block_y,
			    unsigned block_z, unsigned shared, CUstream stream,
			    void **args, void **extra);

/* Of applications. */
CUresult mock_mem_alloc_managed(CUdeviceptr *addr, size_t len, unsigned flags);
CUresult mock_event_query(CUevent event);
CUresult mock_stream_begin_capture(CUstream stream, int mode);
CUresult mock_stream_end_capture(CUstream stream, CUgraph *graph);
CUresult mock_graph_instantiate(CUgraphExec *exec, CUgraph graph,
				unsigned long long flags);
CUresult mock_graph_launch(CUgraphExec exec, CUstream stream);
CUresult mock_graph_exec_destroy(CUgraphExec exec);
CUresult mock_graph_destroy(CUgraph graph);

/* The two that are exported. */
CUresult cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags);
CUresult cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags,
			     int *status);

#endif
