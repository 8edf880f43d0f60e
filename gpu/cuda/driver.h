/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What Weft uses of the CUDA driver's binary interface, declared here so that building it
 * needs nothing of CUDA; names and numbers are the driver's documented ones.
 * driver_load() takes the library at run time and each function in the version whose
 * shape is declared here (cuGetProcAddress), whatever newer ones the library has.
 */
#ifndef WEFT_GPU_CUDA_DRIVER_H
#define WEFT_GPU_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUuserObject_st *CUuserObject;
typedef void (*CUhostFn)(void *arg);

enum cu_result {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_PEER_ACCESS_UNSUPPORTED = 217,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_PERMITTED = 800,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_UNKNOWN = 999,
};

enum cu_device_attribute {
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED = 110,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS = 117,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING = 118,
	CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS = 122,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED = 124,
};

enum cu_pointer_attribute {
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
	CU_POINTER_ATTRIBUTE_BUFFER_ID = 7,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE = 10,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
	CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
	CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
};

enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_UNIFIED = 4,

	CU_MEM_ALLOCATION_TYPE_PINNED = 1,
	CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_ACCESS_FLAGS_PROT_READWRITE = 3,
	CU_MEM_ALLOC_GRANULARITY_RECOMMENDED = 1,
	CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1,
	CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE = 1,
	CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1,

	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_MEMHOSTREGISTER_PORTABLE = 1,
	CU_MEMHOSTREGISTER_DEVICEMAP = 2,

	CU_STREAM_NON_BLOCKING = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,

	CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
	CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
	CU_STREAM_WAIT_VALUE_GEQ = 0,
	CU_STREAM_WRITE_VALUE_DEFAULT = 0,

	CU_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1,
	CU_GRAPH_USER_OBJECT_MOVE = 1,

	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST = 1,
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX = 0,
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER = 100,
	CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES = 200,
	CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER = 100,
};

typedef struct {
	char bytes[16];
} CUuuid;

typedef struct {
	char reserved[64];
} CUipcMemHandle;

typedef struct {
	int type;
	int id;
} CUmemLocation;

typedef struct {
	int type;
	int requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	struct {
		unsigned char compressionType;
		unsigned char gpuDirectRDMACapable;
		unsigned short usage;
		unsigned char reserved[4];
	} allocFlags;
} CUmemAllocationProp;

typedef struct {
	CUmemLocation location;
	int flags;
} CUmemAccessDesc;

typedef struct {
	size_t srcXInBytes;
	size_t srcY;
	int srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	void *srcArray;
	size_t srcPitch;
	size_t dstXInBytes;
	size_t dstY;
	int dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	void *dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;

/* One step of cuStreamBatchMemOp; waits and writes have the same shape. */
typedef union {
	int operation;
	struct {
		int operation;
		CUdeviceptr address;
		uint64_t value64;
		unsigned flags;
		CUdeviceptr alias;
	} value;
	uint64_t pad[6];
} CUstreamBatchMemOpParams;

_Static_assert(sizeof(CUmemAllocationProp) == 32, "as the driver has it");
_Static_assert(sizeof(CUmemAccessDesc) == 12, "as the driver has it");
_Static_assert(sizeof(CUDA_MEMCPY2D) == 128, "as the driver has it");
_Static_assert(sizeof(CUstreamBatchMemOpParams) == 48, "as the driver has it");

/* Every function that is called, filled by driver_load(). Those that an older driver may
 * lack are NULL there; driver.c's table says which may be. */
struct driver {
	void *library;
	int version; /* 12080 is 12.8 */

	CUresult (*init)(unsigned flags);
	CUresult (*driver_get_version)(int *version);
	CUresult (*get_error_name)(CUresult error, const char **name);
	CUresult (*get_error_string)(CUresult error, const char **text);
	CUresult (*device_get)(CUdevice *device, int ordinal);
	CUresult (*device_get_count)(int *count);
	CUresult (*device_get_name)(char *name, int len, CUdevice device);
	CUresult (*device_get_uuid)(CUuuid *uuid, CUdevice device);
	CUresult (*device_total_mem)(size_t *bytes, CUdevice device);
	CUresult (*device_get_attribute)(int *value, int attribute, CUdevice device);
	CUresult (*device_get_pci_bus_id)(char *id, int len, CUdevice device);
	CUresult (*device_can_access_peer)(int *can, CUdevice device, CUdevice peer);
	CUresult (*primary_ctx_retain)(CUcontext *ctx, CUdevice device);
	CUresult (*primary_ctx_release)(CUdevice device);
	CUresult (*primary_ctx_get_state)(CUdevice device, unsigned *flags, int *active);
	CUresult (*ctx_get_current)(CUcontext *ctx);
	CUresult (*ctx_set_current)(CUcontext ctx);
	CUresult (*ctx_enable_peer_access)(CUcontext peer, unsigned flags);
	CUresult (*thread_exchange_capture_mode)(int *mode);

	CUresult (*mem_alloc)(CUdeviceptr *addr, size_t len);
	CUresult (*mem_free)(CUdeviceptr addr);
	CUresult (*mem_host_alloc)(void **addr, size_t len, unsigned flags);
	CUresult (*mem_free_host)(void *addr);
	CUresult (*mem_host_register)(void *addr, size_t len, unsigned flags);
	CUresult (*mem_host_unregister)(void *addr);
	CUresult (*mem_host_get_device_pointer)(CUdeviceptr *dev, void *host,
						unsigned flags);
	CUresult (*pointer_get_attributes)(unsigned count, int *attributes, void **data,
					   CUdeviceptr addr);
	CUresult (*pointer_set_attribute)(const void *value, int attribute,
					  CUdeviceptr addr);
	CUresult (*mem_get_address_range)(CUdeviceptr *base, size_t *len,
					  CUdeviceptr addr);
	CUresult (*mem_address_reserve)(CUdeviceptr *addr, size_t len, size_t align,
					CUdeviceptr hint, unsigned long long flags);
	CUresult (*mem_address_free)(CUdeviceptr addr, size_t len);
	CUresult (*mem_create)(CUmemGenericAllocationHandle *handle, size_t len,
			       const CUmemAllocationProp *prop, unsigned long long flags);
	CUresult (*mem_release)(CUmemGenericAllocationHandle handle);
	CUresult (*mem_map)(CUdeviceptr addr, size_t len, size_t offset,
			    CUmemGenericAllocationHandle handle,
			    unsigned long long flags);
	CUresult (*mem_unmap)(CUdeviceptr addr, size_t len);
	CUresult (*mem_set_access)(CUdeviceptr addr, size_t len,
				   const CUmemAccessDesc *desc, size_t count);
	CUresult (*mem_get_granularity)(size_t *granularity,
					const CUmemAllocationProp *prop, int option);
	CUresult (*mem_retain_handle)(CUmemGenericAllocationHandle *handle, void *addr);
	CUresult (*mem_export)(void *shareable, CUmemGenericAllocationHandle handle,
			       int type, unsigned long long flags);
	CUresult (*mem_import)(CUmemGenericAllocationHandle *handle, void *shareable,
			       int type);
	CUresult (*mem_get_range_handle)(void *handle, CUdeviceptr addr, size_t len,
					 int type, unsigned long long flags);
	CUresult (*ipc_get_mem_handle)(CUipcMemHandle *handle, CUdeviceptr addr);
	CUresult (*ipc_open_mem_handle)(CUdeviceptr *addr, CUipcMemHandle handle,
					unsigned flags);
	CUresult (*ipc_close_mem_handle)(CUdeviceptr addr);
	CUresult (*flush_rdma_writes)(int target, int scope);

	CUresult (*stream_create)(CUstream *stream, unsigned flags);
	CUresult (*stream_destroy)(CUstream stream);
	CUresult (*stream_query)(CUstream stream);
	CUresult (*stream_synchronize)(CUstream stream);
	CUresult (*stream_wait_event)(CUstream stream, CUevent event, unsigned flags);
	CUresult (*event_create)(CUevent *event, unsigned flags);
	CUresult (*event_destroy)(CUevent event);
	CUresult (*event_record)(CUevent event, CUstream stream);
	CUresult (*memcpy_async)(CUdeviceptr dst, CUdeviceptr src, size_t len,
				 CUstream stream);
	CUresult (*memcpy_2d_async)(const CUDA_MEMCPY2D *copy, CUstream stream);
	CUresult (*memset_d8_async)(CUdeviceptr dst, unsigned char byte, size_t len,
				    CUstream stream);
	CUresult (*stream_write_value64)(CUstream stream, CUdeviceptr addr,
					 uint64_t value, unsigned flags);
	CUresult (*stream_batch_mem_op)(CUstream stream, unsigned count,
					CUstreamBatchMemOpParams *ops, unsigned flags);
	CUresult (*launch_host_func)(CUstream stream, CUhostFn fn, void *arg);
	CUresult (*stream_get_capture_info)(CUstream stream, int *status, uint64_t *id,
					    CUgraph *graph, const CUgraphNode **deps,
					    size_t *count);
	CUresult (*user_object_create)(CUuserObject *object, void *ptr, CUhostFn destroy,
				       unsigned count, unsigned flags);
	CUresult (*graph_retain_user_object)(CUgraph graph, CUuserObject object,
					     unsigned count, unsigned flags);

	CUresult (*module_load)(CUmodule *module, const char *file);
	CUresult (*module_load_data)(CUmodule *module, const void *image);
	CUresult (*module_unload)(CUmodule module);
	CUresult (*module_get_function)(CUfunction *function, CUmodule module,
					const char *name);
	CUresult (*func_load)(CUfunction function);
	CUresult (*launch_kernel)(CUfunction function, unsigned grid_x, unsigned grid_y,
				  unsigned grid_z, unsigned block_x, unsigned block_y,
				  unsigned block_z, unsigned shared, CUstream stream,
				  void **args, void **extra);
};

/* Loads libcuda.so.1 and fills *driver. 0, or a negative errno with the reason in why
 * (GPU_WHY_LEN bytes): -ENODEV where there is no driver, or none of a version that can be
 * used. The library stays loaded: its threads may outlive us. */
int driver_load(struct driver *driver, char *why);

#endif
