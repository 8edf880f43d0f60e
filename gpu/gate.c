/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/gate.h"

#include <errno.h>

int gate_init(struct gate *gate, struct gpu *gpu, int device, struct gate_words *words)
{
	if (device < 0 || device >= gpu->devices)
		return -ENODEV;
	if (gpu->device[device].hold == GPU_HOLD_NONE)
		return -ENOSYS;
	gate->gpu = gpu;
	gate->device = device;
	gate->words = words;
	atomic_init(&gate->broken, false);
	return 0;
}

int gate_pass(struct gate *gate, void *stream, uint64_t n)
{
	const uint64_t value = n ? n : 1;
	const struct gpu_word_op ops[] = {
		{.kind = GPU_WORD_WRITE, .word = &gate->words->arrived, .value = value},
		{.kind = GPU_WORD_WAIT, .word = &gate->words->opened, .value = value},
		{.kind = GPU_WORD_WRITE, .word = &gate->words->opened, .value = 0},
	};

	return gpu_stream_words(gate->gpu, gate->device, stream, ops, n ? 2 : 3);
}

void gate_break(struct gate *gate)
{
	atomic_store(&gate->broken, true);
	atomic_store(&gate->words->opened, GATE_BROKEN);
}
