/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a backend: a library that is loaded at run time, or the null backend. */
#include "config.h"

#include "gpu/gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "gpu/null/null.h"

#define LIBRARY_NAME "libweft-gpu.so"
#define ENTRY_NAME   "weft_gpu_backend"

/* The library beside the one that this code is in, or one folder up (the provider lies in
 * a folder of its own below). */
static void *load_beside(const char *up)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;
	int n;

	if (!dladdr((const void *)&ENTRY_NAME, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (!slash)
		return NULL;
	n = snprintf(path, sizeof(path), "%.*s/%s" LIBRARY_NAME,
		     (int)(slash - info.dli_fname), info.dli_fname, up);
	if (n < 0 || (size_t)n >= sizeof(path))
		return NULL;
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Whether this code is in the program itself, not in a library of it. */
static bool in_program(void)
{
	const uintptr_t headers = getauxval(AT_PHDR);
	Dl_info info;

	return dladdr((const void *)&ENTRY_NAME, &info) && headers &&
	       (uintptr_t)info.dli_fbase == (headers & ~(uintptr_t)4095);
}

/* For the command, which was installed with the library and may have been moved with it:
 * as far from it as when it was configured. */
static void *load_moved(void)
{
	static const char bin[] = WEFT_BINDIR, lib[] = WEFT_LIBDIR;
	char exe[PATH_MAX], path[2 * PATH_MAX];
	size_t common = 0, end;
	ssize_t n = in_program() ? readlink("/proc/self/exe", exe, sizeof(exe) - 1) : -1;
	const char *slash;

	if (n <= 0)
		return NULL;
	exe[n] = '\0';
	slash = strrchr(exe, '/');
	/* What both begin with, up to a slash. */
	for (size_t i = 0; bin[i] && bin[i] == lib[i]; i++)
		common = bin[i] == '/' ? i : common;
	end = slash ? (size_t)(slash - exe) : 0;
	if (end < strlen(bin + common) ||
	    strncmp(exe + end - strlen(bin + common), bin + common,
		    strlen(bin + common)) != 0)
		return NULL;
	snprintf(path, sizeof(path), "%.*s%s/" LIBRARY_NAME,
		 (int)(end - strlen(bin + common)), exe, lib + common);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* NULL, with the reason in why. */
static void *load(const char *named, char *why)
{
	void *library = NULL;

	if (named) {
		library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
	} else {
		library = load_beside("");
		if (!library)
			library = load_beside("../");
		if (!library)
			library = load_moved();
		if (!library)
			library = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
	}
	if (!library) {
		const char *words = dlerror();

		snprintf(why, GPU_WHY_LEN, "no GPU library: %s", words ? words : "?");
	}
	return library;
}

static int open_backend(const char *named, struct gpu **gpu, char *why)
{
	gpu_backend_open_fn *entry;
	void *library, *address;

	library = load(named, why);
	if (!library)
		return -ENODEV;
	address = dlsym(library, ENTRY_NAME);
	memcpy(&entry, &address, sizeof(entry));
	if (!entry) {
		snprintf(why, GPU_WHY_LEN, "%s is no GPU library: it has no " ENTRY_NAME,
			 named ? named : LIBRARY_NAME);
		return -ENODEV;
	}
	return entry(GPU_ABI, gpu, why);
}

int gpu_open(const struct gpu_opts *opts, struct gpu **gpu)
{
	const char *named = opts ? opts->library : NULL;
	char why[GPU_WHY_LEN] = "";
	struct gpu *found = NULL;
	int ret;

	if (!named)
		named = getenv("WEFT_GPU_LIB");
	if (named && !*named)
		named = NULL;
	if (named && strcmp(named, "none") == 0) {
		snprintf(why, sizeof(why),
			 "turned off (WEFT_GPU_LIB or an option says none)");
		ret = -ENODEV;
	} else {
		ret = open_backend(named, &found, why);
	}
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		found = null_open(why);
	if (!found)
		return -ENOMEM;
	*gpu = found;
	return 0;
}

void gpu_close(struct gpu *gpu)
{
	if (gpu)
		gpu->ops->close(gpu);
}
