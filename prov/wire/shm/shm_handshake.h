/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handshake's messages on a socket: bytes and descriptors in one piece, checked.
 * Nothing here waits.
 */
#ifndef WEFT_WIRE_SHM_SHM_HANDSHAKE_H
#define WEFT_WIRE_SHM_SHM_HANDSHAKE_H

#include "prov/wire/shm/shm_format.h"

struct mem_keyview;

/* What a message brought; descriptors are -1 where there is none and owned by the holder.
 */
struct shm_parcel {
	struct shm_hello hello;
	struct wire_addr addr;
	int fds[SHM_FD_COUNT];
};

/* The same, mapped. */
struct shm_peer_memory {
	struct shm_pair_mem *pair; /* hello only */
	int pair_fd;		   /* hello only; else -1 */
	struct shm_hub_mem *hub;
	struct mem_keyview *keys;
	const struct shm_bulk_mem *bulk; /* NULL: there are no slots, or no room */
	int wake;
};

/* fds: SHM_FD_COUNT of them, of which those are sent that such a message has; NULL with a
 * refusal. 0, or
 * -FI_ECONNREFUSED when it could not be sent just now, -FI_ECONNRESET: nobody there. */
int shm_parcel_send(int sock, const struct shm_hello *hello, const int *fds);

/* 0, -FI_EAGAIN (nothing there yet), -FI_ECONNRESET (the other end is gone), -FI_EINVAL
 * (not a message of this kind). */
int shm_parcel_recv(int sock, enum shm_hello_kind kind, struct shm_parcel *parcel);
void shm_parcel_drop(struct shm_parcel *parcel);

/* Checks and maps what the parcel's descriptors are; takes them over, also on failure.
 * -FI_EINVAL, -FI_ENOMEM. */
int shm_parcel_map(struct shm_parcel *parcel, struct shm_peer_memory *mem);
void shm_peer_memory_drop(struct shm_peer_memory *mem);

#endif
