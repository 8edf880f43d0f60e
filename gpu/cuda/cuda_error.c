/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "gpu/cuda/cuda.h"

/* Of this thread's last failed call. */
static _Thread_local char text[2 * GPU_WHY_LEN];

static const struct {
	CUresult rc;
	int ret;
} known[] = {
	{CUDA_ERROR_INVALID_VALUE, -EINVAL},
	{CUDA_ERROR_OUT_OF_MEMORY, -ENOMEM},
	{CUDA_ERROR_NO_DEVICE, -ENODEV},
	{CUDA_ERROR_INVALID_DEVICE, -ENODEV},
	{CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, -ENOSYS},
	{CUDA_ERROR_INVALID_HANDLE, -EINVAL},
	{CUDA_ERROR_NOT_FOUND, -ENOSYS},
	{CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, -EINVAL},
	{CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, -EINVAL},
	{CUDA_ERROR_NOT_PERMITTED, -ENOSYS},
	{CUDA_ERROR_NOT_SUPPORTED, -ENOSYS},
	{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, -EBUSY},
	{CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, -EBUSY},
	{CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, -EBUSY},
};

static int errno_of(CUresult rc)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].rc == rc)
			return known[i].ret;
	}
	return -EIO;
}

int cuda_fail(struct cuda *cuda, CUresult rc, const char *what, ...)
{
	const char *name = NULL, *words = NULL;
	char asked[GPU_WHY_LEN];
	va_list ap;

	va_start(ap, what);
	vsnprintf(asked, sizeof(asked), what, ap);
	va_end(ap);
	if (cuda->drv.get_error_name(rc, &name) != CUDA_SUCCESS || !name)
		name = "an error that the driver has no name for";
	if (cuda->drv.get_error_string(rc, &words) != CUDA_SUCCESS || !words)
		words = "no words of the driver";
	snprintf(text, sizeof(text), "%s: %s (%d), %s", asked, name, rc, words);
	return errno_of(rc);
}

int cuda_refuse(int ret, const char *what, ...)
{
	va_list ap;

	va_start(ap, what);
	vsnprintf(text, sizeof(text), what, ap);
	va_end(ap);
	return ret;
}

const char *cuda_error(struct gpu *gpu)
{
	(void)gpu;
	return text;
}
