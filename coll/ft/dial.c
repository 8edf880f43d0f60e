/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_io.h"
#include "coll/ft/dial.h"

enum {
	PAUSE_FIRST_US = 5000,
	PAUSE_MOST_US = 1000000,
};

bool ft_dial_parse(const char *text, int port_min, char host[FT_DIAL_HOST],
		   char port[FT_DIAL_PORT])
{
	const char *colon = strrchr(text, ':'), *from = text, *end = colon;
	char *rest;
	long number;

	if (!colon)
		return false;
	if (*text == '[') {
		from++;
		end = colon[-1] == ']' ? colon - 1 : text;
	} else if (memchr(text, ':', (size_t)(colon - text))) {
		return false; /* an IPv6 address without brackets is ambiguous */
	}
	if (end <= from || end - from >= FT_DIAL_HOST)
		return false;
	number = strtol(colon + 1, &rest, 10);
	if (*rest || rest == colon + 1 || rest - colon > 6 || number < port_min ||
	    number > 65535)
		return false;
	snprintf(host, FT_DIAL_HOST, "%.*s", (int)(end - from), from);
	snprintf(port, FT_DIAL_PORT, "%u", (unsigned)number & 0xffff);
	return true;
}

/* The place that the text begins with, up to a comma. */
static bool parse_at(const char *at, char host[FT_DIAL_HOST], char port[FT_DIAL_PORT])
{
	char one[FT_DIAL_HOST + 16];
	size_t len = strcspn(at, ",");

	if (len >= sizeof(one))
		return false;
	memcpy(one, at, len);
	one[len] = '\0';
	return ft_dial_parse(one, 1, host, port);
}

/* What follows it; NULL: it is the last. */
static const char *after(const char *at)
{
	at += strcspn(at, ",");
	return *at ? at + 1 : NULL;
}

int ft_dial_init(struct ft_dial *d, const char *names, int64_t attempt_us)
{
	char host[FT_DIAL_HOST], port[FT_DIAL_PORT];

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->attempt_us = attempt_us;
	d->at = d->names;
	if (!names || strlen(names) >= sizeof(d->names)) {
		snprintf(d->why, sizeof(d->why), "the coordinator's address is %s",
			 names ? "too long" : "not given");
		return -EINVAL;
	}
	strcpy(d->names, names);
	for (const char *at = d->names; at; at = after(at)) {
		if (parse_at(at, host, port))
			continue;
		snprintf(d->why, sizeof(d->why),
			 "the coordinator's address is \"%.150s\": it must be HOST:PORT "
			 "or [IPV6]:PORT, or several separated by commas",
			 names);
		return -EINVAL;
	}
	return 0;
}

void ft_dial_fini(struct ft_dial *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	if (d->list)
		freeaddrinfo(d->list);
	d->list = d->next = NULL;
}

static void pause_until(struct ft_dial *d, int64_t now)
{
	uint32_t random = 0, us = d->pause_us ? d->pause_us : PAUSE_FIRST_US;

	/* Without entropy the members only meet more often. */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	d->until = now + us / 2 + random % us;
	d->pause_us = us * 2 > PAUSE_MOST_US ? PAUSE_MOST_US : us * 2;
}

/* The next place, after a pause when it is the first again. */
static void next_place(struct ft_dial *d, int64_t now)
{
	const char *next = after(d->at);

	ft_dial_fini(d);
	d->at = next ? next : d->names;
	d->until = now;
	if (!next)
		pause_until(d, now);
}

static void say_why(struct ft_dial *d, const char *what)
{
	snprintf(d->why, sizeof(d->why), "%.*s: %s", (int)strcspn(d->at, ","), d->at,
		 what);
}

/* False: the name is not known. */
static bool look_up(struct ft_dial *d)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV};
	char host[FT_DIAL_HOST], port[FT_DIAL_PORT];
	int rc;

	if (!parse_at(d->at, host, port))
		return false; /* init() has seen to that */
	rc = getaddrinfo(host, port, &hints, &d->list);
	if (rc) {
		d->list = NULL;
		say_why(d, gai_strerror(rc));
		return false;
	}
	d->next = d->list;
	return true;
}

/* Starts at the next address of the place. 0: it is under way, else errno. */
static int start(struct ft_dial *d, int64_t now)
{
	const struct addrinfo *ai = d->next;

	d->next = ai->ai_next;
	d->fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	d->until = now + d->attempt_us;
	if (d->fd < 0)
		return errno;
	if (connect(d->fd, ai->ai_addr, ai->ai_addrlen) && errno != EINPROGRESS &&
	    errno != EINTR)
		return errno;
	return 0;
}

/* Where nobody listens at a port of the range from which the system draws, an attempt may
 * draw that very port, and is then connected to itself. */
static bool is_own_end(int fd)
{
	char own[BOOT_ADDR_TEXT], other[BOOT_ADDR_TEXT];

	boot_io_address(fd, false, own);
	boot_io_address(fd, true, other);
	return strcmp(own, other) == 0;
}

/* 0: connected; EINPROGRESS: not yet. */
static int look(struct ft_dial *d, bool ready, int64_t now)
{
	socklen_t len = sizeof(int);
	int error = 0;

	if (!ready)
		return now >= d->until ? ETIMEDOUT : EINPROGRESS;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &error, &len))
		return errno;
	if (!error && is_own_end(d->fd))
		error = ECONNREFUSED;
	if (!error && boot_io_prepare(d->fd))
		error = errno;
	return error;
}

int ft_dial_step(struct ft_dial *d, bool ready, int64_t now)
{
	int error, fd = -1;

	if (d->fd >= 0) {
		error = look(d, ready, now);
	} else {
		if (now < d->until)
			return -1;
		if (!d->list && !look_up(d)) {
			next_place(d, now);
			return -1;
		}
		error = start(d, now);
		if (error == 0)
			return -1; /* poll says when */
	}
	if (error == EINPROGRESS)
		return -1;
	if (error == 0) {
		fd = d->fd;
		d->fd = -1;
		ft_dial_fini(d);
		return fd;
	}
	say_why(d, strerror(error));
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	d->until = now;
	if (!d->next)
		next_place(d, now);
	return -1;
}

void ft_dial_again(struct ft_dial *d, int64_t now)
{
	next_place(d, now);
}

void ft_dial_good(struct ft_dial *d)
{
	d->pause_us = 0;
}
