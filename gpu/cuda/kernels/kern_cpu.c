/* SPDX-License-Identifier: BSD-2-Clause */
/* See kern_cpu.h. */
#include "config.h"

#include "gpu/cuda/kernels/kern_cpu.h"

#include <stddef.h>
#include <string.h>

#include "gpu/cuda/kernels/kern_list.h"

#include "gpu/cuda/kernels/kern_all.h"

struct kern_cpu {
	const char *symbol;
	void (*run)(struct kern_at at, const void *args, int met);
};

#define KERN_ROW(name) {"weft_" #name, kern_##name},

static const struct kern_cpu table[] = {KERN_LIST(KERN_ROW)};

const struct kern_cpu *kern_cpu_find(const char *symbol)
{
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].symbol, symbol) == 0)
			return &table[i];
	}
	return NULL;
}

void kern_cpu_run(const struct kern_cpu *kernel, uint32_t blocks, uint32_t threads,
		  const void *args)
{
	struct kern_at at = {.threads = threads, .blocks = blocks};

	for (at.block = 0; at.block < blocks; at.block++) {
		for (at.thread = 0; at.thread < threads; at.thread++)
			kernel->run(at, args, 0);
		for (at.thread = 0; at.thread < threads; at.thread++)
			kernel->run(at, args, 1);
	}
}

void kern_cpu_words(const struct kern_words *words, uint32_t count)
{
	kern_words_run(words, count);
}
