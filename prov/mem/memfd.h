/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sealed anonymous memory that is handed to peers as a descriptor. Its size never changes
 * (sealed), so that whoever mapped it can't be hit by SIGBUS, and it lives nowhere in the
 * file system: neither a crash nor a full /dev/shm matters.
 */
#ifndef WEFT_MEM_MEMFD_H
#define WEFT_MEM_MEMFD_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory of `size` bytes (a multiple of the page size), sealed and mapped for
 * reading and writing. -FI_ENOMEM, -FI_EMFILE. */
int mem_memfd_create(const char *name, size_t size, int *fd, void **map);

/* From now on nobody can map it for writing or write to it any more; mappings that exist
 * stay as they are. Returns false where the kernel doesn't know this seal. */
bool mem_memfd_seal_writes(int fd);

/*
 * Maps a descriptor that came from a peer. size: in, the size it must have, or 0 for any;
 * out, the size. -FI_EINVAL unless it is anonymous memory with its size sealed; a peer
 * can then neither shrink it under us nor have put a file, a device or a huge page pool
 * there. The descriptor stays the caller's.
 */
int mem_memfd_map(int fd, size_t *size, bool write, void **map);

#endif
