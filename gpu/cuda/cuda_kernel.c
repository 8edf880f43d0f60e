/* SPDX-License-Identifier: BSD-2-Clause */
/* Device code: which of the images fits a device, and its kernels by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/cuda.h"
#include "gpu/cuda/image.h"
#include "gpu/cuda/kernels/launch.h"

/* Machine code runs on its own compute capability and on later ones of the same major
 * number; PTX is translated by the driver for any. */
static const struct cuda_image *image_for(const struct gpu_device *info)
{
	const struct cuda_image *best = NULL;
	const int have = info->major * 10 + info->minor;

	for (size_t i = 0; i < cuda_image_count; i++) {
		const struct cuda_image *im = &cuda_images[i];
		const bool fits = im->arch == 0 ||
				  (im->arch / 10 == info->major && im->arch <= have);

		if (fits && (!best || im->arch > best->arch))
			best = im;
	}
	return best;
}

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return h;
}

/* The place of a name, or the free one where it would go. There always is a free one. */
static struct cuda_kernel *place(struct cuda_device *dev, const char *name)
{
	uint32_t i = hash(name) & (CUDA_KERNELS - 1);

	while (dev->kernels[i].name && strcmp(dev->kernels[i].name, name) != 0)
		i = (i + 1) & (CUDA_KERNELS - 1);
	return &dev->kernels[i];
}

/* Under the device's lock; NULL: the module has none of that name. */
static CUfunction function_get(struct cuda *cuda, struct cuda_device *dev,
			       const char *name)
{
	struct cuda_kernel *k = place(dev, name);
	CUfunction fn;

	if (k->name)
		return k->function;
	if (cuda->drv.module_get_function(&fn, dev->module, name) != CUDA_SUCCESS)
		return NULL;
	if (cuda->drv.func_load)
		cuda->drv.func_load(fn);
	if (dev->kernel_count + 1 < CUDA_KERNELS) {
		k->name = strdup(name);
		k->function = fn;
		dev->kernel_count += k->name != NULL;
	}
	return fn;
}

static void say_why(struct cuda *cuda, int device, const struct cuda_image *im,
		    const char *file, CUresult rc)
{
	const struct gpu_device *info = &cuda->gpu.device[device];
	char *why = cuda->gpu.kernels_why;
	const char *name = NULL;

	if (cuda->drv.get_error_name(rc, &name) != CUDA_SUCCESS || !name)
		name = "?";
	pthread_mutex_lock(&cuda->lock);
	if (file)
		snprintf(why, GPU_WHY_LEN,
			 "WEFT_GPU_KERNELS names %s, which GPU %d does not take: %s (%d)",
			 file, device, name, rc);
	else if (!cuda_image_count)
		snprintf(why, GPU_WHY_LEN,
			 "this build has no device code: configure found no compiler for "
			 "it");
	else if (!im)
		snprintf(why, GPU_WHY_LEN,
			 "this build has no device code for compute capability %d.%d",
			 info->major, info->minor);
	else
		snprintf(why, GPU_WHY_LEN, "GPU %d does not take the kernels %s: %s (%d)",
			 device, im->name, name, rc);
	pthread_mutex_unlock(&cuda->lock);
}

void cuda_kernels_load(struct cuda *cuda, int device)
{
	const struct cuda_image *im = image_for(&cuda->gpu.device[device]);
	const char *file = getenv("WEFT_GPU_KERNELS");
	struct cuda_device *dev = &cuda->dev[device];
	CUresult rc;

	if (file && !*file)
		file = NULL;
	if (file)
		rc = cuda->drv.module_load(&dev->module, file);
	else if (im)
		rc = cuda->drv.module_load_data(&dev->module, im->bytes);
	else
		rc = CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (rc == CUDA_SUCCESS) {
		dev->kernels = calloc(CUDA_KERNELS, sizeof(*dev->kernels));
		if (dev->kernels) {
			for (size_t i = 0; i < launch_symbol_count; i++)
				function_get(cuda, dev, launch_symbols[i]);
			return;
		}
		cuda->drv.module_unload(dev->module);
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	}
	dev->module = NULL;
	say_why(cuda, device, im, file, rc);
}

void cuda_kernels_unload(struct cuda *cuda, int device)
{
	struct cuda_device *dev = &cuda->dev[device];

	if (!dev->module)
		return;
	for (uint32_t i = 0; i < CUDA_KERNELS; i++)
		free(dev->kernels[i].name);
	free(dev->kernels);
	dev->kernels = NULL;
	cuda->drv.module_unload(dev->module);
	dev->module = NULL;
}

int cuda_launch_locked(struct cuda *cuda, int device, CUstream stream,
		       const struct gpu_launch *launch)
{
	struct cuda_device *dev = &cuda->dev[device];
	CUfunction fn;
	CUresult rc;

	if (!dev->module)
		return cuda_refuse(-ENOSYS, "launching %s: %s", launch->function,
				   cuda->gpu.kernels_why);
	fn = function_get(cuda, dev, launch->function);
	if (!fn)
		return cuda_refuse(-ENOSYS, "there is no kernel %s among those loaded",
				   launch->function);
	rc = cuda->drv.launch_kernel(fn, launch->grid[0], launch->grid[1],
				     launch->grid[2], launch->block[0], launch->block[1],
				     launch->block[2], launch->shared, stream,
				     launch->args, NULL);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(cuda, rc,
				 "launching %s on GPU %d, %ux%ux%u blocks of %ux%ux%u",
				 launch->function, device, launch->grid[0],
				 launch->grid[1], launch->grid[2], launch->block[0],
				 launch->block[1], launch->block[2]);
	return 0;
}

int cuda_launch(struct cuda *cuda, int device, CUstream stream,
		const struct gpu_launch *launch)
{
	struct cuda_device *dev = &cuda->dev[device];
	int ret;

	pthread_mutex_lock(&dev->lock);
	ret = cuda_launch_locked(cuda, device, stream, launch);
	pthread_mutex_unlock(&dev->lock);
	return ret;
}
