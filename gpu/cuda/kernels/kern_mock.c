/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernels as the stand-in for the driver takes them: gpu/mock/mock.h. */
#include "config.h"

#include "gpu/cuda/kernels/kern_cpu.h"
#include "gpu/cuda/kernels/kern_list.h"
#include "gpu/mock/mock.h"

#define MOCK_API __attribute__((visibility("default")))

static void run(const char *symbol, const struct mock_grid *grid, void **args)
{
	kern_cpu_run(kern_cpu_find(symbol), grid->grid[0], grid->block[0], args[0]);
}

/* A function and the bytes of its arguments, as the stand-in looks them up. */
#define MOCK_KERNEL(name, args_type)                                          \
	MOCK_API void weft_##name(const struct mock_grid *grid, void **args); \
	MOCK_API void weft_##name(const struct mock_grid *grid, void **args)  \
	{                                                                     \
		run("weft_" #name, grid, args);                               \
	}                                                                     \
	extern MOCK_API const uint32_t weft_##name##_args[];                  \
	const uint32_t weft_##name##_args[] = {sizeof(args_type), 0};

#define MOCK_REDUCE(name) MOCK_KERNEL(name, struct kern_reduce)

KERN_REDUCE_LIST(MOCK_REDUCE)
MOCK_KERNEL(copy, struct kern_copy)

MOCK_API void weft_words(const struct mock_grid *grid, void **args);
extern MOCK_API const uint32_t weft_words_args[];
const uint32_t weft_words_args[] = {sizeof(struct kern_words), sizeof(uint32_t), 0};

MOCK_API void weft_words(const struct mock_grid *grid, void **args)
{
	(void)grid;
	kern_cpu_words(args[0], *(const uint32_t *)args[1]);
}
