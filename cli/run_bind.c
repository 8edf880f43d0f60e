/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_bind.h. Where cores are not known, every CPU counts as one. */
#include "config.h"

#include <sched.h>
#include <stdlib.h>

#include "cli/run_bind.h"
#include "topo/host/host.h"

struct run_bind {
	struct host *host;
	int *nth;	 /* by index of a CPU: number of its core among those that
			  * hold a usable one; -1: not usable */
	int cpus, cores; /* that are usable; cores 0: not known */
};

/* Numbers the cores that hold a usable CPU. One that is of no core leaves all unknown. */
static bool read_cores(struct run_bind *bind)
{
	const struct host *host = bind->host;
	int *of = malloc((host->cores + 1) * sizeof(*of));
	bool known = true;

	if (!of)
		return false;
	for (unsigned c = 0; c < host->cores; c++)
		of[c] = host->core[c].usable ? bind->cores++ : -1;
	for (unsigned i = 0; i < host->cpus; i++) {
		const struct host_cpu *cpu = &host->cpu[i];

		bind->cpus += cpu->usable;
		known = known && (!cpu->usable || cpu->core >= 0);
		bind->nth[i] = cpu->core >= 0 ? of[cpu->core] : -1;
	}
	if (!known)
		bind->cores = 0;
	free(of);
	return bind->cpus > 0;
}

struct run_bind *run_bind_open(void)
{
	static const struct host_options no_devices = {.no_devices = true};
	struct run_bind *bind = calloc(1, sizeof(*bind));
	char why[HOST_WHY];

	if (!bind)
		return NULL;
	if (host_open(&no_devices, &bind->host, why) == 0 && bind->host->here)
		bind->nth = malloc(bind->host->cpus * sizeof(*bind->nth));
	if (!bind->nth || !read_cores(bind)) {
		run_bind_close(bind);
		return NULL;
	}
	return bind;
}

void run_bind_close(struct run_bind *bind)
{
	if (!bind)
		return;
	host_close(bind->host);
	free(bind->nth);
	free(bind);
}

int run_bind_cpus(const struct run_bind *bind)
{
	return bind->cpus;
}

const struct host *run_bind_host(const struct run_bind *bind)
{
	return bind->host;
}

int run_bind_apply(const struct run_bind *bind, int32_t rank, int32_t size)
{
	const struct host *host = bind->host;
	const int bits = host->cpu[host->cpus - 1].id + 1;
	const size_t len = CPU_ALLOC_SIZE(bits);
	bool by_core = bind->cores > 0 && (size <= bind->cores || size > bind->cpus);
	int want = rank % (by_core ? bind->cores : bind->cpus), nth = 0, rc;
	cpu_set_t *mask = CPU_ALLOC(bits);

	if (!mask)
		return -1;
	CPU_ZERO_S(len, mask);
	for (unsigned i = 0; i < host->cpus; i++) {
		if (!host->cpu[i].usable)
			continue;
		if ((by_core ? bind->nth[i] : nth) == want)
			CPU_SET_S(host->cpu[i].id, len, mask);
		nth++;
	}
	rc = sched_setaffinity(0, len, mask);
	CPU_FREE(mask);
	return rc;
}
