/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPUs a rank may use: round-robin over the cores that this process may use. */
#ifndef WEFT_CLI_RUN_BIND_H
#define WEFT_CLI_RUN_BIND_H

#include <stdbool.h>
#include <stdint.h>

struct host;
struct run_bind;

/* NULL when nothing can be found out, or memory ran out: then ranks are not bound. */
struct run_bind *run_bind_open(void);
void run_bind_close(struct run_bind *bind);

/* What is known of the host's processors; belongs to bind. */
const struct host *run_bind_host(const struct run_bind *bind);
/* CPUs (hardware threads) that may be used. */
int run_bind_cpus(const struct run_bind *bind);

/* Binds the calling process as rank of size; -1 and errno. Each rank gets a core with all
 * its threads while there are cores enough, else one CPU. */
int run_bind_apply(const struct run_bind *bind, int32_t rank, int32_t size);

#endif
