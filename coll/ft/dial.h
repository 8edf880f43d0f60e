/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connecting to one of several places, again and again, without ever waiting: whoever
 * owns it polls the socket and calls step. After a failure the next place is tried; after
 * the last one there is a pause, which doubles and varies, so that members that lost
 * their coordinator together don't come back together.
 */
#ifndef WEFT_FT_DIAL_H
#define WEFT_FT_DIAL_H

#include <stdbool.h>
#include <stdint.h>

enum { FT_DIAL_NAMES = 1024, FT_DIAL_HOST = 256, FT_DIAL_PORT = 8, FT_DIAL_WHY = 300 };

struct addrinfo;

struct ft_dial {
	char names[FT_DIAL_NAMES]; /* "host:port,host:port" */
	const char *at;		   /* of the place that is tried, or is next */
	struct addrinfo *list, *next;
	int fd;	       /* of the attempt that is under way, to be polled for POLLOUT */
	int64_t until; /* when it is given up; with fd -1 when the next one starts */
	int64_t attempt_us;
	uint32_t pause_us;
	char why[FT_DIAL_WHY]; /* the last failure */
};

/* "host:port", "[v6]:port"; port_min 0 lets the system choose. false: it is none. */
bool ft_dial_parse(const char *text, int port_min, char host[FT_DIAL_HOST],
		   char port[FT_DIAL_PORT]);

/* Negative errno, and d->why: a name is not host:port. */
int ft_dial_init(struct ft_dial *d, const char *names, int64_t attempt_us);
void ft_dial_fini(struct ft_dial *d);

/* Goes on. The connected socket, which is the caller's from now on; -1: not yet, step
 * again at d->until or when d->fd is ready (`ready`: poll said so). Names are looked up
 * here: one that is no number may take as long as the system's resolver. */
int ft_dial_step(struct ft_dial *d, bool ready, int64_t now);

/* What was connected broke. From now on the next place is tried. */
void ft_dial_again(struct ft_dial *d, int64_t now);

/* What was connected is of use: pauses begin anew. */
void ft_dial_good(struct ft_dial *d);

#endif
