/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "cli/info_gpus.h"

#include <stdio.h>

static double gib(uint64_t bytes)
{
	return (double)bytes / (1024.0 * 1024 * 1024);
}

static const char *missing(const struct gpu *gpu)
{
	if (!gpu)
		return "no memory to look for them";
	return gpu->devices ? NULL : gpu->why;
}

struct gpu *info_gpus_open(void)
{
	struct gpu *gpu = NULL;

	return gpu_open(NULL, &gpu) == 0 ? gpu : NULL;
}

void info_gpus_text(const struct gpu *gpu)
{
	const char *why = missing(gpu);

	printf("\nGPUs%s%s%s\n", why ? "" : " (", why ? "" : gpu->why, why ? "" : ")");
	if (why) {
		printf("  none: %s\n", why);
		return;
	}
	for (int i = 0; i < gpu->devices; i++) {
		const struct gpu_device *d = &gpu->device[i];

		printf("  %-16s %-20s compute %d.%d, %.1f GiB; %s%s; %s\n", d->pci,
		       d->name, d->major, d->minor, gib(d->memory),
		       d->dmabuf && d->rdma ? "DMA buffers for NICs"
					    : "no DMA buffers for NICs",
		       d->vmm ? ", pieces by descriptor" : "",
		       d->kernels ? "kernels" : "no kernels");
	}
	if (gpu->kernels_why[0])
		printf("  no kernels: %s\n", gpu->kernels_why);
}

void info_gpus_json(struct json *j, const struct gpu *gpu)
{
	json_array_begin(j, "gpus");
	for (int i = 0; gpu && i < gpu->devices; i++) {
		const struct gpu_device *d = &gpu->device[i];
		char compute[32];

		snprintf(compute, sizeof(compute), "%d.%d", d->major, d->minor);
		json_object_begin(j, NULL);
		json_text(j, "name", d->name);
		json_text(j, "pci", d->pci);
		json_text(j, "compute", compute);
		json_real(j, "memory_gib", gib(d->memory));
		json_bool(j, "dma_buffers", d->dmabuf && d->rdma);
		json_bool(j, "kernels", d->kernels);
		json_object_end(j);
	}
	json_array_end(j);
	json_text(j, "gpus_missing", missing(gpu));
}
