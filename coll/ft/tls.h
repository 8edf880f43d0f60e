/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Encrypted connections to a server whose certificate a known authority signed, by the
 * system's libssl, which is loaded when the first is wanted; nothing of it is linked. A
 * connection does no I/O of its own: whoever owns it carries bytes between it and a
 * socket.
 */
#ifndef WEFT_FT_TLS_H
#define WEFT_FT_TLS_H

#include <stdbool.h>
#include <stddef.h>

enum { FT_TLS_WHY = 300 };

/* Files of PEM; NULL or "": none. */
struct ft_tls_files {
	const char *ca;	  /* authorities that may sign the server's; none: the system's */
	const char *cert; /* this side's, with those between it and the authority */
	const char *key;  /* of cert */
};

struct ft_tls;

/* Reads the files. -ENOSYS: no libssl, or built without; -EINVAL: a file is none; with
 * why. Connections may be made by several threads. */
int ft_tls_open(const struct ft_tls_files *files, struct ft_tls **tls,
		char why[FT_TLS_WHY]);
void ft_tls_close(struct ft_tls *tls); /* may be NULL */

struct ft_tls_conn;

/* To a server that must be `host`, a name or an address. NULL: no memory. */
struct ft_tls_conn *ft_tls_connect(const struct ft_tls *tls, const char *host);
void ft_tls_end(struct ft_tls_conn *c); /* may be NULL */

/* What came by the socket; false: no memory. */
bool ft_tls_put(struct ft_tls_conn *c, const void *bytes, size_t len);
/* What is to go by the socket now: up to `most` bytes, 0 when there is none. To be asked
 * after each call of those below. */
size_t ft_tls_get(struct ft_tls_conn *c, void *bytes, size_t most);

enum ft_tls_end {
	FT_TLS_GOOD,
	FT_TLS_WAITS, /* for more of the socket: again after ft_tls_put() */
	FT_TLS_OVER,  /* read: the other end has said that this is all */
	FT_TLS_BAD,   /* why */
};

/* All of it; begins the connection if it has not begun. */
enum ft_tls_end ft_tls_write(struct ft_tls_conn *c, const void *bytes, size_t len,
			     char why[FT_TLS_WHY]);
/* Some: *len bytes, `most` at most. */
enum ft_tls_end ft_tls_read(struct ft_tls_conn *c, void *bytes, size_t most, size_t *len,
			    char why[FT_TLS_WHY]);

#endif
