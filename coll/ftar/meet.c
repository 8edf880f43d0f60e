/* SPDX-License-Identifier: BSD-2-Clause */
/* See meet.h. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ftar/meet.h"

/* How often somebody who waits looks whether the epoch is over. */
#define MEET_LOOK_MS  5
#define MEET_AGAIN_US 5000
/* Who waits for the root waits so much longer than the root does, which knows better who
 * is missing. */
#define MEET_GRACE_US	 500000
#define MEET_PENDING	 64	 /* connections that have not said yet whose they are */
#define MEET_STRANGER_US 2000000 /* and for so long at most, */
#define MEET_ROOM_US	 100000	 /* or so long, where others want in */

struct meet_pending {
	int fd; /* -1: none */
	int64_t since;
	size_t got;
	uint8_t hello[MEET_HELLO_LEN];
};

struct meet {
	struct meet_attr attr;
	int32_t rank, size;
	int *fd;	 /* root: by rank, -1: not there; others: [0] is the root */
	int32_t missing; /* whom we waited for last, or -1 */
	char why[MEET_WHY];
};

/* ---- addresses ------------------------------------------------------------------------
 */

/* An address of a name, of kind SOCK_STREAM; gai's words, or NULL. */
static const char *resolve(const char *host, const char *port,
			   struct sockaddr_storage *at, socklen_t *len)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	const int rc = getaddrinfo(host, port, &hints, &found);

	if (rc)
		return gai_strerror(rc);
	memset(at, 0, sizeof(*at));
	memcpy(at, found->ai_addr, found->ai_addrlen);
	*len = found->ai_addrlen;
	freeaddrinfo(found);
	return NULL;
}

/* The own address by which `towards` is reached, which nothing is sent to. */
static const char *own_address(const char *towards, struct sockaddr_storage *at,
			       socklen_t *len)
{
	const char *first = towards + strcspn(towards, ","), *colon = first, *why;
	char host[256], port[16];
	int fd, rc;

	while (colon > towards && *colon != ':')
		colon--;
	if (colon == towards)
		return "it is not host:port";
	snprintf(host, sizeof(host), "%.*s", (int)(colon - towards), towards);
	snprintf(port, sizeof(port), "%.*s", (int)(first - colon - 1), colon + 1);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		memmove(host, host + 1, strlen(host));
	}
	why = resolve(host, port, at, len);
	if (why)
		return why;
	fd = socket(at->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return strerror(errno);
	rc = connect(fd, (struct sockaddr *)at, *len);
	*len = sizeof(*at);
	if (!rc)
		rc = getsockname(fd, (struct sockaddr *)at, len);
	why = rc ? strerror(errno) : NULL;
	close(fd);
	return why;
}

static void port_clear(struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		((struct sockaddr_in *)at)->sin_port = 0;
	else
		((struct sockaddr_in6 *)at)->sin6_port = 0;
}

int meet_listen(const char *host, const char *towards, uint8_t card[FT_CARD_MAX],
		uint32_t *card_len, char why[MEET_WHY])
{
	struct sockaddr_storage at;
	socklen_t len = 0;
	const bool named = host && *host;
	const char *bad =
		named ? resolve(host, NULL, &at, &len) : own_address(towards, &at, &len);
	int fd;

	if (bad) {
		snprintf(why, MEET_WHY, "no address of this host %s %.100s: %.80s",
			 named ? "by the name" : "to reach the coordinator at",
			 named ? host : towards, bad);
		return -1;
	}
	port_clear(&at);
	fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 1024) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) || !meet_card_put(&at, card)) {
		snprintf(why, MEET_WHY, "listening for other members: %.100s",
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	*card_len = MEET_CARD_LEN;
	return fd;
}

/* ---- reading and writing
 * ----------------------------------------------------------------
 */

/* Until the socket is ready; false when it is time to give up. */
static bool meet_poll(struct meet *m, int fd, short events, int64_t until)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		const int rc = poll(&p, 1, boot_wait_ms(until, MEET_LOOK_MS));

		if (rc > 0)
			return true;
		if (m->attr.stopped(m->attr.arg)) {
			snprintf(m->why, sizeof(m->why), "the epoch is over");
			m->missing = -1;
			return false;
		}
		if (boot_clock_us() >= until) {
			snprintf(m->why, sizeof(m->why), "no word of member %d in time",
				 m->missing);
			return false;
		}
	}
}

static bool meet_move(struct meet *m, int fd, void *buf, size_t len, bool out,
		      int64_t until)
{
	char *at = buf;

	while (len) {
		ssize_t n = out ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) {
			snprintf(m->why, sizeof(m->why), "member %d is gone: %.80s",
				 m->missing, n ? strerror(errno) : "it hung up");
			m->missing = -1;
			return false;
		}
		if (!meet_poll(m, fd, out ? POLLOUT : POLLIN, until))
			return false;
	}
	return true;
}

/* ---- the root -------------------------------------------------------------------------
 */

/* Reads on; takes the connection over, or closes it, when it has said who it is. */
static void pending_read(struct meet *m, struct meet_pending *p)
{
	const ssize_t n = recv(p->fd, p->hello + p->got, sizeof(p->hello) - p->got, 0);
	int32_t rank;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n > 0)
		p->got += (size_t)n;
	if (n > 0 && p->got < sizeof(p->hello))
		return;
	rank = n > 0 ? meet_hello_get(p->hello, m->attr.roster, m->attr.job) : -1;
	if (rank < 0) {
		close(p->fd);
	} else {
		/* Somebody whose connection broke comes again. */
		if (m->fd[rank] >= 0)
			close(m->fd[rank]);
		m->fd[rank] = p->fd;
	}
	p->fd = -1;
}

static int prepare(int fd)
{
	const int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Whoever is missing, or -1. */
static int32_t root_missing(const struct meet *m)
{
	for (int32_t i = 1; i < m->size; i++) {
		if (m->fd[i] < 0)
			return i;
	}
	return -1;
}

/* Strangers that say nothing keep no member out. */
static void root_make_room(struct meet_pending pending[MEET_PENDING])
{
	struct meet_pending *oldest = &pending[0];

	for (int i = 0; i < MEET_PENDING; i++) {
		if (pending[i].fd < 0)
			return;
		if (pending[i].since < oldest->since)
			oldest = &pending[i];
	}
	if (boot_clock_us() - oldest->since < MEET_ROOM_US)
		return;
	close(oldest->fd);
	oldest->fd = -1;
}

static void root_accept(struct meet *m, struct meet_pending pending[MEET_PENDING])
{
	for (int i = 0; i < MEET_PENDING; i++) {
		int fd;

		if (pending[i].fd >= 0)
			continue;
		fd = accept4(m->attr.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		pending[i] = (struct meet_pending){.fd = prepare(fd),
						   .since = boot_clock_us()};
	}
}

static void root_turn(struct meet *m, struct meet_pending pending[MEET_PENDING])
{
	struct pollfd p[MEET_PENDING + 1];
	int64_t now;

	p[0] = (struct pollfd){.fd = m->attr.listener, .events = POLLIN};
	for (int i = 0; i < MEET_PENDING; i++)
		p[i + 1] = (struct pollfd){.fd = pending[i].fd, .events = POLLIN};
	(void)poll(p, MEET_PENDING + 1, MEET_LOOK_MS);
	now = boot_clock_us();
	for (int i = 0; i < MEET_PENDING; i++) {
		if (pending[i].fd >= 0 && p[i + 1].revents)
			pending_read(m, &pending[i]);
		if (pending[i].fd >= 0 && now - pending[i].since > MEET_STRANGER_US) {
			close(pending[i].fd);
			pending[i].fd = -1;
		}
	}
	if (p[0].revents)
		root_make_room(pending);
	root_accept(m, pending);
}

/* All others come. */
static bool root_join(struct meet *m)
{
	struct meet_pending pending[MEET_PENDING];
	bool good = true;

	for (int i = 0; i < MEET_PENDING; i++)
		pending[i].fd = -1;
	while (good && (m->missing = root_missing(m)) >= 0) {
		root_turn(m, pending);
		if (m->attr.stopped(m->attr.arg)) {
			snprintf(m->why, sizeof(m->why), "the epoch is over");
			m->missing = -1;
			good = false;
		} else if (boot_clock_us() >= m->attr.until) {
			snprintf(m->why, sizeof(m->why),
				 "member %d of the epoch did not come", m->missing);
			good = false;
		}
	}
	for (int i = 0; i < MEET_PENDING; i++) {
		if (pending[i].fd >= 0)
			close(pending[i].fd);
	}
	return good;
}

/* ---- the others -----------------------------------------------------------------------
 */

static bool leaf_say_hello(struct meet *m)
{
	uint8_t hello[MEET_HELLO_LEN];

	meet_hello_put(hello, m->attr.roster, (uint32_t)m->rank, m->attr.job);
	return meet_move(m, m->fd[0], hello, sizeof(hello), true, m->attr.until);
}

static bool leaf_connect_once(struct meet *m)
{
	const struct ft_entry *root = &m->attr.roster->entry[0];
	struct sockaddr_storage at;
	socklen_t len = 0;
	int rc, error = 0;
	socklen_t error_len = sizeof(error);

	m->missing = 0;
	if (!meet_card_get(root->card, root->card_len, &at, &len)) {
		snprintf(m->why, sizeof(m->why), "the card of member 0 is none");
		return false;
	}
	m->fd[0] = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (m->fd[0] < 0) {
		snprintf(m->why, sizeof(m->why), "socket: %.80s", strerror(errno));
		return false;
	}
	prepare(m->fd[0]);
	rc = connect(m->fd[0], (struct sockaddr *)&at, len);
	if (rc && errno == EINPROGRESS &&
	    meet_poll(m, m->fd[0], POLLOUT, m->attr.until)) {
		rc = getsockopt(m->fd[0], SOL_SOCKET, SO_ERROR, &error, &error_len);
		if (!rc && error) {
			errno = error;
			rc = -1;
		}
	}
	if (!rc)
		return leaf_say_hello(m);
	snprintf(m->why, sizeof(m->why), "connecting to member 0: %.80s",
		 strerror(errno));
	return false;
}

/* The root may not know of the epoch yet: it hangs up then, which shows when the first
 * all-gather is held; so it answers the hello by a byte when all are there. */
static bool leaf_join(struct meet *m)
{
	uint8_t there = 0;

	for (;;) {
		const struct timespec nap = {.tv_nsec = MEET_AGAIN_US * 1000};

		if (leaf_connect_once(m) &&
		    meet_move(m, m->fd[0], &there, 1, false,
			      boot_deadline_later(m->attr.until, MEET_GRACE_US)))
			return true;
		if (m->fd[0] >= 0)
			close(m->fd[0]);
		m->fd[0] = -1;
		if (m->attr.stopped(m->attr.arg)) {
			m->missing = -1;
			return false;
		}
		/* It gave up, and knows better who is missing. */
		if (boot_clock_us() >= m->attr.until)
			return false;
		nanosleep(&nap, NULL);
	}
}

/* ---- both -----------------------------------------------------------------------------
 */

static bool meet_join(struct meet *m)
{
	uint8_t there = 1;

	if (m->rank)
		return leaf_join(m);
	if (!root_join(m))
		return false;
	for (int32_t i = 1; i < m->size; i++) {
		m->missing = i;
		if (!meet_move(m, m->fd[i], &there, 1, true, m->attr.until))
			return false;
	}
	return true;
}

struct meet *meet_open(const struct meet_attr *attr, uint64_t *suspect,
		       char why[MEET_WHY])
{
	struct meet *m = calloc(1, sizeof(*m));

	*suspect = 0;
	if (!m) {
		snprintf(why, MEET_WHY, "no memory");
		return NULL;
	}
	m->attr = *attr;
	m->size = (int32_t)attr->roster->count;
	m->rank = ft_roster_find(attr->roster, attr->id);
	m->missing = -1;
	m->fd = malloc((size_t)m->size * sizeof(*m->fd));
	for (int32_t i = 0; m->fd && i < m->size; i++)
		m->fd[i] = -1;
	if (!m->fd || m->rank < 0) {
		snprintf(m->why, sizeof(m->why), "%s",
			 m->fd ? "this member is not of the epoch" : "no memory");
	} else if (meet_join(m)) {
		m->missing = -1;
		return m;
	}
	snprintf(why, MEET_WHY, "%s", m->why);
	*suspect = meet_suspect(m);
	meet_close(m);
	return NULL;
}

void meet_close(struct meet *m)
{
	if (!m)
		return;
	for (int32_t i = 0; m->fd && i < m->size; i++) {
		if (m->fd[i] >= 0)
			close(m->fd[i]);
	}
	free(m->fd);
	free(m);
}

uint64_t meet_suspect(const struct meet *m)
{
	return m->missing >= 0 && m->missing < m->size
		       ? m->attr.roster->entry[m->missing].id
		       : 0;
}

int32_t meet_rank(const struct meet *m)
{
	return m->rank;
}

int meet_allgather(void *arg, const void *in, void *out, size_t len, int64_t timeout_us)
{
	struct meet *m = arg;
	const int64_t until = boot_deadline(timeout_us);
	char *all = out;

	m->missing = 0;
	if (m->rank) {
		if (!meet_move(m, m->fd[0], (void *)in, len, true, until) ||
		    !meet_move(m, m->fd[0], out, len * (size_t)m->size, false, until))
			return 1;
		m->missing = -1;
		return 0;
	}
	memcpy(all, in, len);
	for (m->missing = 1; m->missing < m->size; m->missing++) {
		if (!meet_move(m, m->fd[m->missing], all + (size_t)m->missing * len, len,
			       false, until))
			return 1;
	}
	for (m->missing = 1; m->missing < m->size; m->missing++) {
		if (!meet_move(m, m->fd[m->missing], out, len * (size_t)m->size, true,
			       until))
			return 1;
	}
	m->missing = -1;
	return 0;
}
