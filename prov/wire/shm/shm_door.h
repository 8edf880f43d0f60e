/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door of an endpoint: a TCP port that is reserved (bound, never listening) and one
 * or two abstract Unix sockets named after the address. All of it lives and dies with the
 * process, in its network namespace; nothing is in the file system.
 */
#ifndef WEFT_WIRE_SHM_SHM_DOOR_H
#define WEFT_WIRE_SHM_SHM_DOOR_H

#include <stdbool.h>

#include "prov/wire/addr.h"

struct shm_door {
	int port_fd;
	int listen_fd;
	int any_fd; /* answers for every local address; -1 when a host was asked for */
	struct wire_addr addr;
};

/* held: the port is this process's already, and is not reserved. -FI_EADDRINUSE,
 * -FI_EADDRNOTAVAIL, -FI_EMFILE, -FI_ENOMEM. */
int shm_door_open(struct shm_door *door, const struct wire_addr *want, bool any,
		  bool held);
void shm_door_close(struct shm_door *door);

/* Knocks: connects a new socket to the door at `to`, without waiting. -FI_ECONNREFUSED,
 * -FI_EHOSTUNREACH, -FI_EACCES, -FI_EMFILE, -FI_ENOMEM. */
int shm_door_knock(const struct wire_addr *to, int *fd);

/* Who is at the other end of a connected socket: false unless it is the same effective
 * user or root: another user's process gets nothing. */
bool shm_door_peer(int fd, int *pid);

/*
 * What tells of a process's death although a child that it forked holds its sockets open:
 * *fd is a pidfd, or -1 where there is none to be had (an old kernel, a filter, no
 * descriptors left, a process that isn't in our namespace) and for our own process.
 * -FI_ECONNREFUSED: it is dead.
 *
 * pid: by shm_door_peer, of a socket that is connected. If that process died meanwhile
 * and another one has its number, it is the end of that other one which is told: late,
 * but of a peer that is dead all the same.
 */
int shm_door_process(int pid, int *fd);

#endif
