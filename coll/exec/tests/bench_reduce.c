/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GB/s of the reductions, per type, operation and instruction set: bytes of the result
 * per second (each costs two bytes read and one written), for operands in the first cache
 * and in memory. Usage: bench_reduce [TYPE]
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/exec/reduce_kernel.h"

enum { CACHE_BYTES = 8 << 10, MEMORY_BYTES = 8 << 20 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double rate(reduce_fn *fn, reduce_scale_fn *scale, size_t bytes, size_t size,
		   char *buf)
{
	double begin = now(), end = begin;
	uint64_t done = 0;

	while (end - begin < 0.01) {
		for (size_t k = 0; k < 1 + (64 << 10) / bytes; k++, done += bytes) {
			if (fn)
				fn(buf, buf, buf + MEMORY_BYTES, bytes / size);
			else
				scale(buf, buf, bytes / size, 3);
		}
		end = now();
	}
	return (double)done / (end - begin) * 1e-9;
}

int main(int argc, char **argv)
{
	char *buf = malloc(2 * (size_t)MEMORY_BYTES);

	if (!buf)
		return 1;
	printf("%-8s %-8s %28s   %28s\n", "type", "set", "in cache: sum prod min scale",
	       "in memory: sum prod min scale");
	for (int t = 0; t < WEFT_TYPE_COUNT; t++) {
		size_t size = weft_type_size((enum weft_type)t);

		if (argc > 1 && strcmp(argv[1], weft_type_name((enum weft_type)t)) != 0)
			continue;
		for (size_t i = 0; i < reduce_isa_count; i++) {
			const struct reduce_kernel *k = &reduce_isa_table[i].kernel[t];
			reduce_fn *fn[] = {k->sum, k->prod, k->min, NULL};

			if (!k->sum || !reduce_isa_table[i].usable())
				continue;
			printf("%-8s %-8s", weft_type_name((enum weft_type)t),
			       reduce_isa_table[i].name);
			for (int f = 0; f < 8; f++) {
				memset(buf, 0, 2 * (size_t)MEMORY_BYTES);
				printf(" %7.2f", rate(fn[f % 4], k->scale,
						      f < 4 ? CACHE_BYTES : MEMORY_BYTES,
						      size, buf));
			}
			printf("\n");
		}
	}
	free(buf);
	return 0;
}
