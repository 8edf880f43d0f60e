/* SPDX-License-Identifier: BSD-2-Clause */
/* Knobs, devices and contexts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/mock/mock_api.h"

struct mock mock = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.knob =
		{
			[MOCK_DEVICES] = 2,
			[MOCK_DRIVER] = 12080,
			[MOCK_CC] = 90,
			[MOCK_P2P] = 1,
			[MOCK_MEMOPS] = 1,
			[MOCK_VMM] = 1,
			[MOCK_DMABUF] = 1,
			[MOCK_PCIE] = 1,
			[MOCK_IPC] = 1,
			[MOCK_SYNC_MEMOPS] = 1,
			[MOCK_HOST] = 1,
			[MOCK_IDLE_MS] = 30000,
		},
};

static const char *const knob_names[MOCK_KNOBS] = {
	[MOCK_DEVICES] = "devices",
	[MOCK_DRIVER] = "driver",
	[MOCK_CC] = "cc",
	[MOCK_P2P] = "p2p",
	[MOCK_MEMOPS] = "memops",
	[MOCK_VMM] = "vmm",
	[MOCK_DMABUF] = "dmabuf",
	[MOCK_PCIE] = "pcie",
	[MOCK_IPC] = "ipc",
	[MOCK_SYNC_MEMOPS] = "sync-memops",
	[MOCK_FAIL_ALLOC] = "fail-alloc",
	[MOCK_FAIL_PIN] = "fail-pin",
	[MOCK_PIN_MS] = "pin-ms",
	[MOCK_FAIL_EXPORT] = "fail-export",
	[MOCK_EXPORT_MS] = "export-ms",
	[MOCK_STALL_MS] = "stall-ms",
	[MOCK_ERROR] = "error",
	[MOCK_NEW_IDS] = "new-ids",
	[MOCK_HOST] = "host",
	[MOCK_IDLE_MS] = "idle-ms",
};

static _Thread_local CUcontext current;

/* Under the lock. */
static void knob_set(enum mock_knob knob, long value)
{
	mock.knob[knob] = value;
	for (struct mock_piece *p = mock.pieces; p && knob == MOCK_NEW_IDS; p = p->next)
		p->id = ++mock.last_id;
}

static int knob_find(const char *name, size_t len)
{
	for (int i = 0; i < MOCK_KNOBS; i++) {
		if (strlen(knob_names[i]) == len &&
		    strncmp(knob_names[i], name, len) == 0)
			return i;
	}
	return -1;
}

__attribute__((visibility("default"))) int weft_mock_set(const char *knob, long value)
{
	const int i = knob_find(knob, strlen(knob));

	if (i < 0)
		return -1;
	pthread_mutex_lock(&mock.lock);
	knob_set((enum mock_knob)i, value);
	pthread_mutex_unlock(&mock.lock);
	return 0;
}

/* A knob that nobody knows must not pass for one that is set. Under the lock. */
static void knobs_from_environment(void)
{
	const char *at = getenv("WEFT_MOCK");

	while (at && *at) {
		const size_t len = strcspn(at, "=");
		const int i = knob_find(at, len);
		char *end = NULL;
		long value;

		if (i < 0 || at[len] != '=') {
			fprintf(stderr, "WEFT_MOCK: no knob at \"%s\"\n", at);
			abort();
		}
		value = strtol(at + len + 1, &end, 10);
		if (end == at + len + 1 || (*end && *end != ',')) {
			fprintf(stderr, "WEFT_MOCK: no number at \"%s\"\n", at);
			abort();
		}
		knob_set((enum mock_knob)i, value);
		at = *end ? end + 1 : end;
	}
	if (mock.knob[MOCK_DEVICES] > MOCK_DEVICES_MAX)
		mock.knob[MOCK_DEVICES] = MOCK_DEVICES_MAX;
}

long mock_knob(enum mock_knob knob)
{
	return mock.knob[knob];
}

bool mock_fails(enum mock_knob knob)
{
	bool fails;

	pthread_mutex_lock(&mock.lock);
	fails = mock.knob[knob] > 0;
	mock.knob[knob] -= fails;
	pthread_mutex_unlock(&mock.lock);
	return fails;
}

void mock_pause(enum mock_knob knob)
{
	long ms;

	pthread_mutex_lock(&mock.lock);
	ms = mock.knob[knob];
	pthread_mutex_unlock(&mock.lock);
	if (ms > 0)
		nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

void mock_stick(CUresult rc)
{
	pthread_mutex_lock(&mock.lock);
	if (mock.knob[MOCK_ERROR] == 0)
		mock.knob[MOCK_ERROR] = rc;
	pthread_mutex_unlock(&mock.lock);
}

CUresult mock_ready(void)
{
	CUresult rc;

	pthread_mutex_lock(&mock.lock);
	rc = (CUresult)mock.knob[MOCK_ERROR];
	if (rc == CUDA_SUCCESS && !mock.started)
		rc = CUDA_ERROR_NOT_INITIALIZED;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_current(int *device)
{
	const CUresult rc = mock_ready();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!current)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = current->device;
	mock_turn(*device);
	return CUDA_SUCCESS;
}

CUresult mock_init(unsigned flags)
{
	CUresult rc;

	(void)flags;
	pthread_mutex_lock(&mock.lock);
	if (!mock.started) {
		knobs_from_environment();
		for (int i = 0; i < MOCK_DEVICES_MAX; i++) {
			mock.ctx[i].device = i;
			mock.null_stream[i].device = i;
			mock.null_stream[i].last = &mock.null_stream[i].first;
		}
		mock.started = true;
	}
	rc = (CUresult)mock.knob[MOCK_ERROR];
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_driver_get_version(int *version)
{
	pthread_mutex_lock(&mock.lock);
	*version = (int)mock.knob[MOCK_DRIVER];
	pthread_mutex_unlock(&mock.lock);
	return CUDA_SUCCESS;
}

static const struct {
	CUresult rc;
	const char *name, *words;
} errors[] = {
	{CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
	{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "not initialized"},
	{CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no device"},
	{CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "no such device"},
	{CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE",
	 "no image of the stand-in"},
	{CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT",
	 "no context is current"},
	{CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no code for it"},
	{CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
	 "devices do not reach each other"},
	{CUDA_ERROR_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
	{CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid handle"},
	{CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "no such symbol"},
	{CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "not done yet"},
	{CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal address"},
	{CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "launch failure"},
	{CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "not permitted"},
	{CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "not supported"},
	{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	 "not while a stream is captured"},
	{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	 "the capture was broken by another call"},
};

CUresult mock_get_error_name(CUresult error, const char **name)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].rc != error)
			continue;
		*name = errors[i].name;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult mock_get_error_string(CUresult error, const char **text)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].rc != error)
			continue;
		*text = errors[i].words;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* Under no lock. */
static CUresult device_check(CUdevice device)
{
	CUresult rc = mock_ready();

	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS && (device < 0 || device >= mock.knob[MOCK_DEVICES]))
		rc = CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_device_get(CUdevice *device, int ordinal)
{
	const CUresult rc = device_check(ordinal);

	if (rc == CUDA_SUCCESS)
		*device = ordinal;
	return rc;
}

CUresult mock_device_get_count(int *count)
{
	const CUresult rc = mock_ready();

	pthread_mutex_lock(&mock.lock);
	*count = (int)mock.knob[MOCK_DEVICES];
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_device_get_name(char *name, int len, CUdevice device)
{
	snprintf(name, (size_t)len, "Weft stand-in %d", device);
	return device_check(device);
}

CUresult mock_device_get_uuid(CUuuid *uuid, CUdevice device)
{
	memcpy(uuid->bytes, "weft-stand-in-0", sizeof(uuid->bytes));
	uuid->bytes[14] = (char)('0' + device);
	return device_check(device);
}

CUresult mock_device_total_mem(size_t *bytes, CUdevice device)
{
	*bytes = (size_t)16 << 30;
	return device_check(device);
}

CUresult mock_device_get_pci_bus_id(char *id, int len, CUdevice device)
{
	snprintf(id, (size_t)len, "0000:%02X:00.0", 0xA0 + device);
	return device_check(device);
}

CUresult mock_device_can_access_peer(int *can, CUdevice device, CUdevice peer)
{
	const CUresult rc = device_check(device);

	pthread_mutex_lock(&mock.lock);
	*can = device != peer && mock.knob[MOCK_P2P];
	pthread_mutex_unlock(&mock.lock);
	return rc == CUDA_SUCCESS ? device_check(peer) : rc;
}

/* Under the lock. */
static int attribute(int what)
{
	switch (what) {
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		return 4;
	case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
		return 2;
	case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
		return 1;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return (int)(mock.knob[MOCK_CC] / 10);
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return (int)(mock.knob[MOCK_CC] % 10);
	case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED:
		return mock.knob[MOCK_VMM] != 0;
	case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
		return mock.knob[MOCK_MEMOPS] >= 0;
	case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED:
		return mock.knob[MOCK_DMABUF] != 0;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
		return mock.knob[MOCK_CC] >= 90 ? CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER
						: 0;
	case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
		return CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST;
	default:
		return 0;
	}
}

CUresult mock_device_get_attribute(int *value, int what, CUdevice device)
{
	const CUresult rc = device_check(device);

	pthread_mutex_lock(&mock.lock);
	*value = attribute(what);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_primary_ctx_retain(CUcontext *ctx, CUdevice device)
{
	const CUresult rc = device_check(device);

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	mock.ctx[device].refs++;
	pthread_mutex_unlock(&mock.lock);
	*ctx = &mock.ctx[device];
	return CUDA_SUCCESS;
}

CUresult mock_primary_ctx_release(CUdevice device)
{
	CUresult rc = device_check(device);

	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS && mock.ctx[device].refs <= 0)
		rc = CUDA_ERROR_INVALID_CONTEXT;
	if (rc == CUDA_SUCCESS)
		mock.ctx[device].refs--;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_primary_ctx_get_state(CUdevice device, unsigned *flags, int *active)
{
	const CUresult rc = device_check(device);

	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	*flags = 0;
	*active = mock.ctx[device].refs > 0;
	pthread_mutex_unlock(&mock.lock);
	return CUDA_SUCCESS;
}

CUresult mock_ctx_get_current(CUcontext *ctx)
{
	*ctx = current;
	return CUDA_SUCCESS;
}

CUresult mock_ctx_set_current(CUcontext ctx)
{
	CUresult rc = CUDA_SUCCESS;

	pthread_mutex_lock(&mock.lock);
	if (ctx && ctx->refs <= 0)
		rc = CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_unlock(&mock.lock);
	if (rc == CUDA_SUCCESS)
		current = ctx;
	return rc;
}

CUresult mock_ctx_enable_peer_access(CUcontext peer, unsigned flags)
{
	int device, can;
	CUresult rc;

	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS || flags)
		return rc == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : rc;
	rc = mock_device_can_access_peer(&can, device, peer->device);
	if (rc == CUDA_SUCCESS && !can)
		rc = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return rc;
}

CUresult mock_flush_rdma_writes(int target, int scope)
{
	int device;
	const CUresult rc = mock_current(&device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
	    (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
	     scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

__attribute__((visibility("default"))) CUresult cuGetProcAddress(const char *name,
								 void **fn, int version,
								 uint64_t flags)
{
	(void)flags;
	return mock_look_up(name, fn, version);
}

__attribute__((visibility("default"))) CUresult cuGetProcAddress_v2(
	const char *name, void **fn, int version, uint64_t flags, int *status)
{
	const CUresult rc = mock_look_up(name, fn, version);

	(void)flags;
	if (status)
		*status = rc == CUDA_SUCCESS ? 0 : 1;
	return rc;
}
