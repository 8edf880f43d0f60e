/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot_launch.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "coll/api/error.h"
#include "coll/boot/boot_launch.h"

/* Ports that are derived from a job's name: above those of services, below those that the
 * kernel hands out. */
enum { PORT_FIRST = 20000, PORT_COUNT = 12000 };

struct launcher {
	const char *name;
	const char *rank, *size;
	const char *local; /* ranks on this host, or hosts where that is what is told */
	bool hosts;
	const char *job; /* the same at all ranks, another for each job */
};

/* In this order. Slurm's are those of a step: a batch script has a rank too, but is no
 * rank of anything. */
static const struct launcher launchers[] = {
	{"torchrun", "RANK", "WORLD_SIZE", NULL, false, "TORCHELASTIC_RUN_ID"},
	{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
	 "OMPI_COMM_WORLD_LOCAL_SIZE", false, "PMIX_NAMESPACE"},
	{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES", true,
	 "SLURM_JOB_ID"},
	{"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", false, "PMI_ID"},
};

static const struct launcher *launcher_find(void)
{
	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (getenv(launchers[i].rank) && getenv(launchers[i].size))
			return &launchers[i];
	}
	return NULL;
}

static enum weft_result number_read(const struct launcher *l, const char *name,
				    int64_t min, int64_t max, int64_t *value)
{
	const char *text = getenv(name);
	char *end = NULL;

	errno = 0;
	*value = text && *text ? strtoll(text, &end, 10) : -1;
	if (!end || *end || errno || *value < min || *value > max)
		return error_set(WEFT_ERR_ARG,
				 "%s of %s is \"%.40s\": it must be a number from "
				 "%" PRId64 " to %" PRId64,
				 name, l->name, text ? text : "", min, max);
	return WEFT_SUCCESS;
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
	return hash;
}

/* MPICH's mpiexec names no job. But all ranks of a host inherit its control socket, also
 * by way of a shell, and no two jobs have the same one. */
static uint64_t hash_control(uint64_t hash)
{
	const char *text = getenv("HYDI_CONTROL_FD");
	char *end = NULL, name[24];
	const long fd = text && *text ? strtol(text, &end, 10) : -1;
	struct stat st;

	if (!end || *end || fd < 0 || fd > INT_MAX || fstat((int)fd, &st) != 0 ||
	    !S_ISSOCK(st.st_mode))
		return hash;
	snprintf(name, sizeof(name), "%" PRIu64, (uint64_t)st.st_ino);
	return hash_text(hash, name);
}

/* What keeps other jobs away; not who wants in: the launcher shares no secret. */
static void job_derive(struct boot_env *env, const struct launcher *l)
{
	const char *job = getenv(l->job), *step = getenv("SLURM_STEP_ID");
	uint64_t hash = hash_text(hash_text(UINT64_C(14695981039346656037), job), step);

	/* Where all are on one host: of others the socket is another. */
	if (!job && !env->port[0])
		hash = hash_control(hash);
	snprintf((char *)env->job, BOOT_JOB_LEN, "%.16s-%016" PRIx64, l->name, hash);
	if (!env->port[0])
		snprintf(env->port, sizeof(env->port), "%u",
			 PORT_FIRST + (unsigned)((hash ^ hash >> 32) % PORT_COUNT));
}

static enum weft_result root_torch(struct boot_env *env, const struct launcher *l)
{
	const char *host = getenv("MASTER_ADDR");
	enum weft_result result;
	int64_t port;

	if (!host || !*host || strlen(host) >= BOOT_HOST_MAX)
		return error_set(WEFT_ERR_ARG,
				 "MASTER_ADDR of torchrun is \"%.40s\": it must be the "
				 "host of rank 0",
				 host ? host : "");
	/* MASTER_PORT itself is torchrun's. */
	result = number_read(l, "MASTER_PORT", 1, 65534, &port);
	if (result != WEFT_SUCCESS)
		return result;
	snprintf(env->host, sizeof(env->host), "%s", host);
	snprintf(env->port, sizeof(env->port), "%u", (unsigned)(port + 1) & 0xffffu);
	return WEFT_SUCCESS;
}

/* Where there is no way to tell where rank 0 is, all must be here. */
static enum weft_result root_local(struct boot_env *env, const struct launcher *l)
{
	int64_t here = 0;

	if (getenv(l->local)) {
		enum weft_result result = number_read(l, l->local, 1, INT32_MAX, &here);

		if (result != WEFT_SUCCESS)
			return result;
	}
	if (here != (l->hosts ? 1 : env->size))
		return error_set(WEFT_ERR_ARG,
				 "%s started %d ranks on several hosts and does not say "
				 "where rank 0 is: set WEFT_ROOT=HOST:PORT (and "
				 "WEFT_JOB, a secret) for all ranks, or start them by "
				 "PMIx",
				 l->name, env->size);
	snprintf(env->host, sizeof(env->host), "127.0.0.1");
	return WEFT_SUCCESS;
}

static enum weft_result root_read(struct boot_env *env, const struct launcher *l)
{
	enum weft_result result;

	if (getenv("WEFT_ROOT"))
		result = boot_env_root(env);
	else
		result = l->local ? root_local(env, l) : root_torch(env, l);
	if (result != WEFT_SUCCESS)
		return result;
	if (!getenv("WEFT_JOB") || !env->port[0])
		job_derive(env, l);
	return getenv("WEFT_JOB") ? boot_env_job(env) : WEFT_SUCCESS;
}

enum weft_result boot_launch_read(struct boot_env *env, int64_t timeout_us, bool *found)
{
	const struct launcher *l = launcher_find();
	enum weft_result result;
	int64_t rank = 0, size = 1;

	*found = true;
	if (!getenv("WEFT_ROOT") && boot_pmix_is_there())
		return timeout_us ? boot_pmix_read(env, timeout_us) : WEFT_SUCCESS;
	*found = l != NULL;
	if (!l)
		return WEFT_SUCCESS;
	result = number_read(l, l->size, 1, BOOT_SIZE_MAX, &size);
	if (result == WEFT_SUCCESS)
		result = number_read(l, l->rank, 0, size - 1, &rank);
	if (result != WEFT_SUCCESS)
		return result;
	env->rank = (int32_t)rank;
	env->size = (int32_t)size;
	return size == 1 ? WEFT_SUCCESS : root_read(env, l);
}
