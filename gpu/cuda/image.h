/* SPDX-License-Identifier: BSD-2-Clause */
/* The device code that this library was built with: none, where there was no compiler for
 * it. */
#ifndef WEFT_GPU_CUDA_IMAGE_H
#define WEFT_GPU_CUDA_IMAGE_H

#include <stddef.h>

struct cuda_image {
	const char *name;  /* for messages */
	const void *bytes; /* what cuModuleLoadData() takes */
	int arch; /* 90: machine code for compute capability 9.0; 0: for any device */
};

extern const struct cuda_image cuda_images[];
extern const size_t cuda_image_count;

#endif
