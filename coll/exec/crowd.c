/* SPDX-License-Identifier: BSD-2-Clause */
/* See crowd.h. */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "coll/exec/crowd.h"

#define CROWD_KERNEL_FILE "/proc/sys/kernel/random/boot_id"

static void place_kernel(char text[CROWD_KERNEL_MAX])
{
	const int fd = open(CROWD_KERNEL_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	memset(text, 0, CROWD_KERNEL_MAX);
	if (fd < 0)
		return;
	got = read(fd, text, CROWD_KERNEL_MAX - 1);
	if (got < 0)
		text[0] = '\0';
	close(fd);
}

void crowd_place_own(struct crowd_place *place)
{
	cpu_set_t set;

	_Static_assert(sizeof(set) == CROWD_CPU_BYTES, "a set of processors fits");
	place_kernel(place->kernel);
	/* It fails where there are more processors than a set holds: no lack of them. */
	if (sched_getaffinity(0, sizeof(set), &set))
		memset(place->cpus, 0xff, sizeof(place->cpus));
	else
		memcpy(place->cpus, &set, sizeof(place->cpus));
}

void crowd_add(struct crowd *crowd, const struct crowd_place *own,
	       const struct crowd_place *rank)
{
	uint8_t common = 0;

	if (!own->kernel[0] ||
	    memcmp(own->kernel, rank->kernel, sizeof(own->kernel)) != 0)
		return;
	for (int i = 0; i < CROWD_CPU_BYTES; i++)
		common |= own->cpus[i] & rank->cpus[i];
	if (!common)
		return;
	crowd->ranks++;
	for (int i = 0; i < CROWD_CPU_BYTES; i++)
		crowd->cpus[i] |= rank->cpus[i];
}

bool crowd_is_tight(const struct crowd *crowd)
{
	uint32_t cpus = 0;

	for (int i = 0; i < CROWD_CPU_BYTES; i++)
		cpus += (uint32_t)__builtin_popcount(crowd->cpus[i]);
	return crowd->ranks > cpus;
}
