/* SPDX-License-Identifier: BSD-2-Clause */
/* A rank for run.t: meets the others, gathers everybody's process id, says how many there
 * are. With an argument, rank 1 then kills itself. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "coll/boot/boot.h"

int main(int argc, char **argv)
{
	struct boot_attr attr = {.timeout_us = 60000000};
	struct boot *boot;
	int32_t pid = (int32_t)getpid(), all[64], known = 0;

	(void)argv;
	if (boot_open(&attr, &boot) || boot_size(boot) > 64 ||
	    boot_allgather(boot, &pid, all, sizeof(pid), 60000000)) {
		fprintf(stderr, "%s\n", weft_error_detail());
		return 1;
	}
	for (int32_t r = 0; r < boot_size(boot); r++)
		known += all[r] > 0;
	printf("rank %d knows %d of %d\n", boot_rank(boot), known, boot_size(boot));
	fflush(stdout);
	if (argc > 1 && boot_rank(boot) == 1)
		raise(SIGKILL);
	if (argc > 1 && boot_allgather(boot, &pid, all, sizeof(pid), 60000000)) {
		fprintf(stderr, "%s\n", weft_error_detail());
		sleep(30); /* the launcher must end this, and report rank 1 */
	}
	boot_close(boot);
	return 0;
}
