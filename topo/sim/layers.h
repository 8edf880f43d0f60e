/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A list of a model's layers, as a text file says it: how many bytes of parameters each
 * has, and what a rank computes for it.
 *
 *	weft-layers 1
 *	# name, bytes of its parameters, time of a rank forward and backward
 *	layer embed 400M forward=0.2ms backward=0.4ms
 *	layer block 360M forward=1.1ms backward=2.2ms times=32
 *	layer head  400M forward=0.5ms backward=1ms
 *
 * Words are separated by blanks; '#' begins a comment; the first line that has words
 *names the format and its version. Layers are in the order of the way forward; `times` of
 *them are alike. Bytes are a number that K, M or G (powers of 1024) may follow, up to
 *1024G; times are in ns, us, ms or s, with up to three digits behind the point, up to
 *1000 s. Gradients have as many bytes as parameters. A list has at least one layer and at
 *most 65536; a file at most 1 MiB.
 */
#ifndef WEFT_TOPO_SIM_LAYERS_H
#define WEFT_TOPO_SIM_LAYERS_H

#include <stddef.h>
#include <stdint.h>

#include "topo/fabric/map.h"

#define LAYERS_MAX	65536u
#define LAYERS_FILE_MAX ((size_t)1 << 20)
#define LAYER_BYTES_MAX (UINT64_C(1) << 40)

struct layer {
	uint64_t bytes;
	double forward, backward; /* s */
};

/* Belongs to who made it: layers_free(). */
struct layers {
	struct layer *layer;
	uint32_t count;
};

/* Reads `len` bytes. 0; -EINVAL: *error says why, with the line; -ENOMEM. */
int layers_parse(const char *text, size_t len, struct layers *layers,
		 struct fabric_error *error);
/* The same of a file; also -errno of opening and reading it, which *error says too. */
int layers_load(const char *path, struct layers *layers, struct fabric_error *error);
void layers_free(struct layers *layers);

#endif
