/* SPDX-License-Identifier: BSD-2-Clause */
/* See error.h. One buffer per thread: a result may be looked at long after the call. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "coll/api/error.h"

#define ERROR_TEXT_MAX 1024

static _Thread_local char error_text[ERROR_TEXT_MAX];

static const char *const result_text[WEFT_RESULT_COUNT] = {
	[WEFT_SUCCESS] = "success",
	[WEFT_ERR_ARG] = "wrong argument",
	[WEFT_ERR_UNSUPPORTED] = "not supported",
	[WEFT_ERR_NOMEM] = "out of memory or descriptors",
	[WEFT_ERR_TIMEOUT] = "no answer before the deadline",
	[WEFT_ERR_PEER] = "a rank died or cannot be reached",
	[WEFT_ERR_PROVIDER] = "libfabric provider failed",
	[WEFT_ERR_BOOTSTRAP] = "ranks could not find each other",
	[WEFT_ERR_COMM] = "the communicator failed earlier",
	[WEFT_ERR_MISMATCH] = "ranks disagree about the call",
	[WEFT_ERR_BUSY] = "still in use",
	[WEFT_ERR_INTERNAL] = "internal error",
	[WEFT_ERR_REVOKED] = "the communicator was revoked",
	[WEFT_ERR_FENCED] = "this member takes no part any more",
	[WEFT_ERR_DEVICE] = "a GPU or its driver failed",
};

enum weft_result error_set(enum weft_result result, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, ap);
	va_end(ap);
	return result;
}

void error_clear(void)
{
	error_text[0] = '\0';
}

const char *weft_error_detail(void)
{
	return error_text;
}

const char *weft_strerror(enum weft_result result)
{
	if ((unsigned)result >= WEFT_RESULT_COUNT)
		return "no result of weft";
	return result_text[result];
}
