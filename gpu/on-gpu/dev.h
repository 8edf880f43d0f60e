/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs of test-on-gpu know of CUDA: memory, kernels from a file, times. By
 * the toolkit's runtime, which the library itself does not use. Whatever fails ends the
 * program with CUDA's words.
 */
#ifndef WEFT_GPU_ON_GPU_DEV_H
#define WEFT_GPU_ON_GPU_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dev_kernel;

struct dev {
	char name[256];
	int processors;
	int major, minor;
};

/* Takes the first device; file: the kernels (a fatbin). */
void dev_open(struct dev *dev, const char *file);

/* More kernels, of another file. */
void dev_load(const char *file);

void *dev_alloc(size_t len);  /* of the device */
void *dev_pinned(size_t len); /* of the host, at the same address for both; zeroed */
void dev_free(void *p);
void dev_copy(void *dst, const void *src, size_t len); /* any two; waits */
void dev_fill(void *dst, int byte, size_t len);

/* By symbol; NULL: no file has one of that name. */
struct dev_kernel *dev_kernel(const char *symbol);

/* args: pointers to the parameters. On the one stream of this program; dev_sync() waits
 * for it and ends the program if a kernel failed. */
void dev_launch(struct dev_kernel *kernel, uint32_t blocks, uint32_t threads,
		void **args);
void dev_copy_start(void *dst, const void *src, size_t len); /* device to device */
void dev_sync(void);
bool dev_idle(void);

/* The driver's memory wait on the stream: until *word >= value, and a write after it;
 * false where the device or the driver has none. */
bool dev_wait_start(uint64_t *word, uint64_t value);
bool dev_write_start(uint64_t *word, uint64_t value);

/* Seconds of what was put on the stream between the two, once it has run. */
void dev_timer_start(void);
double dev_timer_stop(void);

double dev_now(void); /* seconds of this CPU's clock */

/* ---- figures ---- */

/* Sorts; the value below which the share lies (0.5: median). */
double dev_percentile(double *v, size_t n, double share);

/* A row of the table that test-on-gpu prints; of the same clock and units as its floor.
 */
void dev_row(const char *what, const char *got, const char *floor, const char *target);

#endif
