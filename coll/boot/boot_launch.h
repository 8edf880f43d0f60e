/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that another launcher than weft run has started: what its variables say about
 * rank and size, and where rank 0 is to be found.
 */
#ifndef WEFT_BOOT_BOOT_LAUNCH_H
#define WEFT_BOOT_BOOT_LAUNCH_H

#include "coll/boot/boot_env.h"

/*
 * Fills env in. torchrun: RANK, WORLD_SIZE, rank 0 at MASTER_ADDR and the port behind
 * MASTER_PORT. PMIx (mpirun of Open MPI, prterun, srun --mpi=pmix): rank 0 tells its
 * address and a secret by it. Variables of Slurm, Open MPI and MPICH without PMIx: all
 * ranks on one host. WEFT_ROOT and WEFT_JOB count more. *found false: none of them.
 * timeout_us 0: only looks whether variables are in order, and does not ask PMIx.
 */
enum weft_result boot_launch_read(struct boot_env *env, int64_t timeout_us, bool *found);

/* boot_env.c: these two variables. */
enum weft_result boot_env_root(struct boot_env *env);
enum weft_result boot_env_job(struct boot_env *env);

/* boot_pmix.c. False: not started by PMIx, or built without it. */
bool boot_pmix_is_there(void);
/* rank, size, host, port, job; at rank 0 root_fd, which listens already. Asked once in a
 * process, then remembered: a later context meets at the same place. */
enum weft_result boot_pmix_read(struct boot_env *env, int64_t timeout_us);

#endif
