/* SPDX-License-Identifier: BSD-2-Clause */
/* Where memory of the stand-in is: what is in a handle of the older kind, and what a "DMA
 * buffer" has for each piece, one behind the other. Whoever stands for a NIC in tests
 * finds the bytes by it: file /proc/PID/fd/FD, from `offset` on. */
#ifndef WEFT_GPU_MOCK_PLACE_H
#define WEFT_GPU_MOCK_PLACE_H

#include <stdint.h>

#define PLACE_MAGIC 0x6b636f6d74666577ULL

struct place {
	uint64_t magic, pid, fd, inode, len, offset, device;
};

#endif
