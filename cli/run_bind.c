/* SPDX-License-Identifier: BSD-2-Clause */
/* See run_bind.h. Cores are known through hwloc; without it every CPU counts as a core.
 */
#include "config.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "cli/run_bind.h"
#include "cli/topology.h"

enum { CPUS_MAX = 1 << 16 };

struct run_bind {
	cpu_set_t *allowed;
	size_t allowed_len; /* bytes */
	int cpus;	    /* in allowed */
	int cores;	    /* that hold one of them; 0: not known */
	int *core; /* [CPUS_MAX bits]: number of the core of a CPU; NULL: not known */
};

static int cpu_bits(const struct run_bind *bind)
{
	return (int)(bind->allowed_len * 8);
}

/* The kernel refuses a mask that is too small for it: try larger ones. */
static bool read_allowed(struct run_bind *bind)
{
	for (int bits = 1024; bits <= CPUS_MAX; bits *= 2) {
		bind->allowed = CPU_ALLOC(bits);
		bind->allowed_len = CPU_ALLOC_SIZE(bits);
		if (!bind->allowed)
			return false;
		if (sched_getaffinity(0, bind->allowed_len, bind->allowed) == 0) {
			bind->cpus = CPU_COUNT_S(bind->allowed_len, bind->allowed);
			return bind->cpus > 0;
		}
		CPU_FREE(bind->allowed);
		bind->allowed = NULL;
		if (errno != EINVAL)
			return false;
	}
	return false;
}

#ifdef HAVE_HWLOC

/* Numbers the cores that hold an allowed CPU. On any failure cores stay unknown. */
static void read_cores(struct run_bind *bind)
{
	hwloc_topology_t topo;
	hwloc_obj_t core = NULL;

	bind->core = calloc((size_t)cpu_bits(bind), sizeof(*bind->core));
	topo = bind->core ? topology_open() : NULL;
	if (!topo)
		return;
	while ((core = hwloc_get_next_obj_by_type(topo, HWLOC_OBJ_CORE, core))) {
		bool used = false;

		for (int cpu = hwloc_bitmap_first(core->cpuset);
		     cpu >= 0 && cpu < cpu_bits(bind);
		     cpu = hwloc_bitmap_next(core->cpuset, cpu)) {
			if (!CPU_ISSET_S(cpu, bind->allowed_len, bind->allowed))
				continue;
			bind->core[cpu] = bind->cores;
			used = true;
		}
		bind->cores += used;
	}
	hwloc_topology_destroy(topo);
}

#else

static void read_cores(struct run_bind *bind)
{
	bind->core = NULL;
}

#endif

struct run_bind *run_bind_open(void)
{
	struct run_bind *bind = calloc(1, sizeof(*bind));

	if (!bind)
		return NULL;
	if (!read_allowed(bind)) {
		run_bind_close(bind);
		return NULL;
	}
	read_cores(bind);
	return bind;
}

void run_bind_close(struct run_bind *bind)
{
	if (!bind)
		return;
	if (bind->allowed)
		CPU_FREE(bind->allowed);
	free(bind->core);
	free(bind);
}

int run_bind_cpus(const struct run_bind *bind)
{
	return bind->cpus;
}

int run_bind_apply(const struct run_bind *bind, int32_t rank, int32_t size)
{
	bool by_core = bind->cores > 0 && (size <= bind->cores || size > bind->cpus);
	int want = rank % (by_core ? bind->cores : bind->cpus), nth = 0, rc;
	cpu_set_t *mask = CPU_ALLOC(cpu_bits(bind));

	if (!mask)
		return -1;
	CPU_ZERO_S(bind->allowed_len, mask);
	for (int cpu = 0; cpu < cpu_bits(bind); cpu++) {
		if (!CPU_ISSET_S(cpu, bind->allowed_len, bind->allowed))
			continue;
		if ((by_core ? bind->core[cpu] : nth) == want)
			CPU_SET_S(cpu, bind->allowed_len, mask);
		nth++;
	}
	rc = sched_setaffinity(0, bind->allowed_len, mask);
	CPU_FREE(mask);
	return rc;
}
