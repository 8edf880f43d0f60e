/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernels as a compiler for GPUs made them, taken into the library as they are. */
#include "config.h"

#include "gpu/cuda/image.h"

#if defined(WEFT_DEVICE_CODE)

/* Ended by a zero byte, which PTX wants; aligned as machine code wants it. */
__asm__(".pushsection .rodata\n"
	".balign 64\n"
	".globl kern_image_begin\n"
	".hidden kern_image_begin\n"
	"kern_image_begin:\n"
	".incbin \"" KERN_IMAGE_FILE "\"\n"
	".byte 0\n"
	".popsection\n");

extern const char kern_image_begin[];

const struct cuda_image cuda_images[] = {
	/* nvcc's has machine code for several and PTX for the rest: for all. */
	{WEFT_DEVICE_CODE, kern_image_begin, 0},
};
const size_t cuda_image_count = 1;

#else

const struct cuda_image cuda_images[1];
const size_t cuda_image_count;

#endif
