/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether ranks have to share processors: then one that waits must not keep from working
 * the one that it waits for. Each rank says where it may run; nothing is assumed from
 * counts alone, since ranks that were bound have a processor each on a machine of many.
 */
#ifndef WEFT_EXEC_CROWD_H
#define WEFT_EXEC_CROWD_H

#include <stdbool.h>
#include <stdint.h>

#define CROWD_KERNEL_MAX 40
#define CROWD_CPU_BYTES	 128 /* 1024 processors, as cpu_set_t has them */

/* Where a rank may run; travels as it is. */
struct crowd_place {
	char kernel[CROWD_KERNEL_MAX]; /* boot id: same text, same processors; "": unknown
					*/
	uint8_t cpus[CROWD_CPU_BYTES]; /* bit per processor, the kernel's order */
};

/* The ranks that may run where we may. */
struct crowd {
	uint32_t ranks;
	uint8_t cpus[CROWD_CPU_BYTES]; /* theirs, together */
};

void crowd_place_own(struct crowd_place *place);

/* Counts a rank, which may be ourselves, if it can get into our way. */
void crowd_add(struct crowd *crowd, const struct crowd_place *own,
	       const struct crowd_place *rank);

/* More ranks than processors for them. */
bool crowd_is_tight(const struct crowd *crowd);

#endif
