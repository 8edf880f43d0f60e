/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMIx, where the library was built with its headers: rank 0 listens, and tells all by it
 * where, and a secret that it has drawn. Then the ranks meet as those of weft run do. The
 * library is loaded when a launcher that speaks PMIx has started the process, and never
 * else.
 */
#include "config.h"

#include <stdlib.h>

#include "coll/boot/boot_launch.h"

#ifndef HAVE_PMIX

bool boot_pmix_is_there(void)
{
	return false;
}

enum weft_result boot_pmix_read(struct boot_env *env, int64_t timeout_us)
{
	(void)env;
	(void)timeout_us;
	return WEFT_ERR_UNSUPPORTED;
}

#else

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pmix.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/boot/boot_io.h"

#define PMIX_ROOT_KEY "weft.root"

struct pmix_calls {
	pmix_status_t (*init)(pmix_proc_t *proc, pmix_info_t info[], size_t count);
	pmix_status_t (*finalize)(const pmix_info_t info[], size_t count);
	pmix_status_t (*put)(pmix_scope_t scope, const char key[], pmix_value_t *value);
	pmix_status_t (*commit)(void);
	pmix_status_t (*fence)(const pmix_proc_t procs[], size_t nprocs,
			       const pmix_info_t info[], size_t ninfo);
	pmix_status_t (*get)(const pmix_proc_t *proc, const char key[],
			     const pmix_info_t info[], size_t ninfo,
			     pmix_value_t **value);
	const char *(*text)(pmix_status_t status);
};

/* What this process was told. There is one PMIx in a process, whatever contexts there
 * are, and it is asked once. */
static struct {
	pthread_mutex_t lock;
	bool known;
	struct boot_env env;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool boot_pmix_is_there(void)
{
	return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

static enum weft_result calls_load(struct pmix_calls *c)
{
	static const char *const names[] = {
		"PMIx_Init",  "PMIx_Finalize", "PMIx_Put",	   "PMIx_Commit",
		"PMIx_Fence", "PMIx_Get",      "PMIx_Error_string"};
	void **at[] = {(void **)&c->init,   (void **)&c->finalize, (void **)&c->put,
		       (void **)&c->commit, (void **)&c->fence,	   (void **)&c->get,
		       (void **)&c->text};
	void *lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return error_set(WEFT_ERR_BOOTSTRAP,
				 "the ranks were started by PMIx, and its library can't "
				 "be loaded: %s; install it, or set WEFT_ROOT",
				 dlerror());
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*at[i] = dlsym(lib, names[i]);
		if (!*at[i])
			return error_set(WEFT_ERR_BOOTSTRAP,
					 "libpmix.so.2 has no %s: set WEFT_ROOT",
					 names[i]);
	}
	return WEFT_SUCCESS;
}

static enum weft_result failed(const struct pmix_calls *c, const char *what,
			       pmix_status_t status)
{
	return error_set(WEFT_ERR_BOOTSTRAP,
			 "PMIx, which started the ranks: %s: %s; did all ranks start, "
			 "and open a context?",
			 what, c->text(status));
}

static enum weft_result size_get(const struct pmix_calls *c, const pmix_proc_t *self,
				 const char *key, uint32_t *size)
{
	pmix_proc_t all = *self;
	pmix_value_t *value = NULL;
	pmix_status_t status;

	all.rank = PMIX_RANK_WILDCARD;
	status = c->get(&all, key, NULL, 0, &value);
	if (status != PMIX_SUCCESS || !value || value->type != PMIX_UINT32) {
		free(value);
		return failed(c, key,
			      status == PMIX_SUCCESS ? PMIX_ERR_TYPE_MISMATCH : status);
	}
	*size = value->data.uint32;
	free(value);
	return WEFT_SUCCESS;
}

/* Rank 0: a socket that listens, where it is, and the secret. */
static enum weft_result root_make(struct boot_env *env, bool one_host, char *card,
				  size_t len)
{
	char own[BOOT_ADDR_TEXT], host[BOOT_HOST_MAX] = "127.0.0.1";
	const char *what = "?";
	unsigned char secret[24];
	char hex[2 * sizeof(secret) + 1];

	if (!one_host && gethostname(host, sizeof(host) - 1) != 0)
		return error_set(WEFT_ERR_BOOTSTRAP, "gethostname: %s", strerror(errno));
	if (getrandom(secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return error_set(WEFT_ERR_BOOTSTRAP, "getrandom: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(secret); i++)
		snprintf(hex + 2 * i, 3, "%02x", secret[i]);
	env->root_fd = boot_io_listen(one_host ? host : "", "0", &what);
	if (env->root_fd < 0)
		return error_set(WEFT_ERR_BOOTSTRAP,
				 "bootstrap: rank 0 cannot listen (%s: %s)", what,
				 strerror(errno));
	boot_io_address(env->root_fd, false, own);
	if (!strrchr(own, ':'))
		return error_set(WEFT_ERR_BOOTSTRAP,
				 "bootstrap: rank 0 listens at an address without port");
	snprintf(card, len, "%s %s %s", host, strrchr(own, ':') + 1, hex);
	return WEFT_SUCCESS;
}

/* Lengths as in struct boot_env, less one. */
static enum weft_result card_read(struct boot_env *env, const char *card)
{
	char hex[BOOT_JOB_LEN + 1];

	if (sscanf(card, "%255s %7s %64s", env->host, env->port, hex) != 3)
		return error_set(WEFT_ERR_BOOTSTRAP,
				 "PMIx: rank 0 told \"%.80s\", which is no address",
				 card);
	memset(env->job, 0, sizeof(env->job));
	memcpy(env->job, hex, strlen(hex));
	return WEFT_SUCCESS;
}

/* A name of length PMIX_MAX_KEYLEN or less, as all of ours are. */
static pmix_info_t info_of(const char *key)
{
	pmix_info_t info;

	memset(&info, 0, sizeof(info));
	snprintf(info.key, sizeof(info.key), "%s", key);
	return info;
}

/* All tell, rank 0 something; then all know. */
static enum weft_result exchange(const struct pmix_calls *c, const pmix_proc_t *self,
				 int64_t timeout_us, char *card, size_t len)
{
	pmix_info_t how[2] = {info_of(PMIX_COLLECT_DATA), info_of(PMIX_TIMEOUT)};
	pmix_value_t value = {.type = PMIX_STRING, .data.string = card}, *got = NULL;
	pmix_proc_t root = *self;
	pmix_status_t status = PMIX_SUCCESS;

	how[0].value.type = PMIX_BOOL;
	how[0].value.data.flag = true;
	how[1].value.type = PMIX_INT;
	how[1].value.data.integer = (int)(timeout_us / 1000000 + 1);
	if (self->rank == 0)
		status = c->put(PMIX_GLOBAL, PMIX_ROOT_KEY, &value);
	if (status == PMIX_SUCCESS)
		status = c->commit();
	if (status != PMIX_SUCCESS)
		return failed(c, "telling rank 0's address", status);
	status = c->fence(NULL, 0, how, timeout_us == WEFT_TIMEOUT_INFINITE ? 1 : 2);
	if (status != PMIX_SUCCESS)
		return failed(c, "waiting for all ranks", status);
	if (self->rank == 0)
		return WEFT_SUCCESS;
	root.rank = 0;
	status = c->get(&root, PMIX_ROOT_KEY, NULL, 0, &got);
	if (status != PMIX_SUCCESS || !got || got->type != PMIX_STRING) {
		free(got);
		return failed(c, "rank 0's address", status);
	}
	snprintf(card, len, "%s", got->data.string);
	free(got->data.string);
	free(got);
	return WEFT_SUCCESS;
}

static enum weft_result ask(const struct pmix_calls *c, const pmix_proc_t *self,
			    int64_t timeout_us, struct boot_env *env)
{
	char card[BOOT_HOST_MAX + BOOT_PORT_MAX + BOOT_JOB_LEN + 8] = "";
	uint32_t size = 0, local = 0;
	enum weft_result result = size_get(c, self, PMIX_JOB_SIZE, &size);

	if (result != WEFT_SUCCESS)
		return result;
	if (size < 1 || size > BOOT_SIZE_MAX || self->rank >= size)
		return error_set(WEFT_ERR_BOOTSTRAP, "PMIx: this is rank %u of %u",
				 self->rank, size);
	env->rank = (int32_t)self->rank;
	env->size = (int32_t)size;
	if (size == 1)
		return WEFT_SUCCESS;
	if (env->rank == 0) {
		result = size_get(c, self, PMIX_LOCAL_SIZE, &local);
		if (result == WEFT_SUCCESS)
			result = root_make(env, local == size, card, sizeof(card));
	}
	/* A rank 0 that can't listen takes part, so that the others hear it at once. */
	if (result != WEFT_SUCCESS) {
		char why[256];

		snprintf(why, sizeof(why), "%s", weft_error_detail());
		(void)exchange(c, self, timeout_us, card, sizeof(card));
		return error_set(result, "%s", why);
	}
	result = exchange(c, self, timeout_us, card, sizeof(card));
	return result == WEFT_SUCCESS ? card_read(env, card) : result;
}

enum weft_result boot_pmix_read(struct boot_env *env, int64_t timeout_us)
{
	enum weft_result result = WEFT_SUCCESS;
	struct pmix_calls calls;
	pmix_proc_t self;

	pthread_mutex_lock(&told.lock);
	if (!told.known) {
		pmix_status_t status;

		told.env = *env;
		result = calls_load(&calls);
		if (result == WEFT_SUCCESS) {
			status = calls.init(&self, NULL, 0);
			if (status != PMIX_SUCCESS) {
				result = failed(&calls, "PMIx_Init", status);
			} else {
				result = ask(&calls, &self, timeout_us, &told.env);
				calls.finalize(NULL, 0);
			}
		}
		told.known = result == WEFT_SUCCESS;
	}
	if (result == WEFT_SUCCESS)
		*env = told.env;
	pthread_mutex_unlock(&told.lock);
	return result;
}

#endif
