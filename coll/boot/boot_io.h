/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets of the bootstrap, all non-blocking and close-on-exec: listen, accept, connect,
 * and reading and writing messages piece by piece.
 */
#ifndef WEFT_BOOT_BOOT_IO_H
#define WEFT_BOOT_BOOT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "coll/boot/boot_wire.h"

enum boot_io {
	BOOT_IO_MORE, /* the socket has no more now */
	BOOT_IO_DONE,
	BOOT_IO_EOF,
	BOOT_IO_ERROR, /* errno */
};

/* Reads until *done is len. */
enum boot_io boot_io_read(int fd, void *buf, size_t len, size_t *done);

/* A message on its way out. payload is the caller's and must stay until it is sent. */
struct boot_tx {
	struct boot_hdr hdr;
	const void *payload;
	size_t payload_len;
	size_t done; /* of header and payload together */
};

enum boot_io boot_io_write(int fd, struct boot_tx *tx);

/* Listens at host:port (an empty host: all addresses); -1 and errno, *what says which
 * call failed (static storage, or gai's words). */
int boot_io_listen(const char *host, const char *port, const char **what);

/* Prepares an accepted, or inherited, socket. */
int boot_io_prepare(int fd);

/* "127.0.0.1:4711" of this end or the other end of a socket; "?" when unknown. */
enum { BOOT_ADDR_TEXT = 80 };
void boot_io_address(int fd, bool peer, char text[BOOT_ADDR_TEXT]);

/*
 * Connects to host:port until the deadline: every address that the name has, again and
 * again, with exponential back-off and jitter (ranks start together: without jitter they
 * would return together). Returns the socket, or -1 with the last failure in why.
 */
int boot_io_connect(const char *host, const char *port, int64_t deadline,
		    uint32_t *backoff, char *why, size_t why_len);

/* Sleeps for the back-off, at most until the deadline, and doubles it. */
void boot_io_backoff(uint32_t *backoff, int64_t deadline);

#endif
