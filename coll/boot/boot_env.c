/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot_env.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "coll/api/error.h"
#include "coll/boot/boot_env.h"
#include "coll/boot/boot_launch.h"
#include "coll/boot/boot_table.h"

#define HOW_TO_START "start the ranks with weft run, or set all four variables"

static enum weft_result env_number(const char *name, int64_t min, int64_t max,
				   int64_t *value)
{
	const char *text = getenv(name);
	char *end;
	long long v;

	if (!text || !*text)
		return error_set(WEFT_ERR_ARG,
				 "%s is not set, but another of WEFT_RANK, WEFT_SIZE, "
				 "WEFT_ROOT, WEFT_JOB is: " HOW_TO_START,
				 name);
	errno = 0;
	v = strtoll(text, &end, 10);
	if (errno || *end || end == text || v < min || v > max)
		return error_set(WEFT_ERR_ARG,
				 "%s is \"%.40s\": it must be a number from %" PRId64
				 " to %" PRId64,
				 name, text, min, max);
	*value = v;
	return WEFT_SUCCESS;
}

/* host:port, [v6]:port */
enum weft_result boot_env_root(struct boot_env *env)
{
	const char *text = getenv("WEFT_ROOT"), *host = text, *colon, *host_end;
	char *end;
	long port;

	if (!text || !*text)
		return error_set(WEFT_ERR_ARG, "WEFT_ROOT is not set: it must be "
					       "HOST:PORT of rank 0; " HOW_TO_START);
	colon = strrchr(text, ':');
	host_end = colon;
	if (colon && *text == '[') {
		host++;
		host_end = colon > text && colon[-1] == ']' ? colon - 1 : NULL;
	} else if (colon && memchr(text, ':', (size_t)(colon - text))) {
		host_end = NULL; /* an IPv6 address without brackets is ambiguous */
	}
	if (!colon || !host_end || host_end <= host || host_end - host >= BOOT_HOST_MAX)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_ROOT is \"%.300s\": it must be HOST:PORT or "
				 "[IPV6]:PORT of rank 0",
				 text);
	port = strtol(colon + 1, &end, 10);
	if (*end || end == colon + 1 || end - colon > 6 || port < 1 || port > 65535)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_ROOT is \"%.300s\": the port must be 1 to 65535",
				 text);
	memcpy(env->host, host, (size_t)(host_end - host));
	env->host[host_end - host] = '\0';
	memcpy(env->port, colon + 1, (size_t)(end - colon));
	return WEFT_SUCCESS;
}

static enum weft_result env_root_fd(struct boot_env *env)
{
	int listening = 0;
	socklen_t len = sizeof(listening);
	enum weft_result result;
	int64_t fd;

	result = env_number("WEFT_ROOT_FD", 0, INT32_MAX, &fd);
	if (result)
		return result;
	if (getsockopt((int)fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) != 0 ||
	    !listening)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_ROOT_FD is %" PRId64 ", which is no listening "
				 "socket in this process (%s): pass it on when rank 0 is "
				 "started, or unset it",
				 fd, strerror(errno));
	env->root_fd = (int)fd;
	return WEFT_SUCCESS;
}

enum weft_result boot_env_job(struct boot_env *env)
{
	const char *text = getenv("WEFT_JOB");
	size_t len = text ? strlen(text) : 0;

	if (len == 0 || len > BOOT_JOB_LEN)
		return error_set(
			WEFT_ERR_ARG,
			"WEFT_JOB has %zu characters: it must be a secret of 1 to "
			"%d, the same at every rank; " HOW_TO_START,
			len, BOOT_JOB_LEN);
	memcpy(env->job, text, len);
	return WEFT_SUCCESS;
}

static enum weft_result env_read(struct boot_env *env, int64_t timeout_us)
{
	enum weft_result result;
	int64_t rank, size;

	memset(env, 0, sizeof(*env));
	env->root_fd = -1;
	env->size = 1;
	if (!getenv("WEFT_RANK") && !getenv("WEFT_SIZE")) {
		bool found;

		result = boot_launch_read(env, timeout_us, &found);
		if (result != WEFT_SUCCESS || found)
			return result;
	}
	if (!getenv("WEFT_RANK") && !getenv("WEFT_SIZE") && !getenv("WEFT_ROOT") &&
	    !getenv("WEFT_JOB")) {
		env->alone = true;
		return WEFT_SUCCESS;
	}
	result = env_number("WEFT_SIZE", 1, BOOT_SIZE_MAX, &size);
	if (result)
		return result;
	result = env_number("WEFT_RANK", 0, size - 1, &rank);
	if (result)
		return result;
	env->rank = (int32_t)rank;
	env->size = (int32_t)size;
	if (size == 1)
		return WEFT_SUCCESS;
	if (rank == 0 && getenv("WEFT_ROOT_FD"))
		result = env_root_fd(env);
	else
		result = boot_env_root(env);
	return result ? result : boot_env_job(env);
}

enum weft_result boot_env_read(struct boot_env *env, int64_t timeout_us)
{
	enum weft_result result = env_read(env, timeout_us);

	if (result == WEFT_SUCCESS && env->size > 1)
		env->node = boot_table_host(env->rank);
	return result;
}
