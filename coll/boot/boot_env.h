/* SPDX-License-Identifier: BSD-2-Clause */
/* The environment variables of the bootstrap, read once and checked. */
#ifndef WEFT_BOOT_BOOT_ENV_H
#define WEFT_BOOT_BOOT_ENV_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/boot/boot_wire.h"
#include "weft/weft.h"

enum { BOOT_HOST_MAX = 256, BOOT_PORT_MAX = 8 };

struct boot_env {
	bool alone; /* no variable is set */
	int32_t rank;
	int32_t size;
	char host[BOOT_HOST_MAX]; /* of WEFT_ROOT, without brackets; "" when not needed */
	char port[BOOT_PORT_MAX];
	int root_fd; /* WEFT_ROOT_FD, or -1; stays open: a later context uses it again */
	uint8_t job[BOOT_JOB_LEN];
	uint64_t node; /* boot_table_host() */
};

/* Or what another launcher says (boot_launch.h), which may wait for the other ranks.
 * ARG with the variable, its value and what it should be. */
enum weft_result boot_env_read(struct boot_env *env, int64_t timeout_us);

#endif
