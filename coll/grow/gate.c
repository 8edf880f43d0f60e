/* SPDX-License-Identifier: BSD-2-Clause */
/* See gate.h. */
#include "config.h"

#include "coll/grow/gate.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ft/dial.h"
#include "coll/ftar/meet_wire.h"

#define GATE_PENDING	 64	 /* callers that have not said hello yet */
#define GATE_STRANGER_US 2000000 /* and for so long at most, */
#define GATE_ROOM_US	 100000	 /* or so long, where others want in */
#define GATE_LOOK_MS	 50
#define GATE_ATTEMPT_US	 5000000 /* for a connection to be made */

/* A caller; those that are in have ranks by their places among them. */
struct caller {
	int fd;	   /* -1: none */
	bool held; /* its hello was right; it is in when it says that it is still there */
	bool in;
	uint32_t order; /* in which it was let in */
	uint64_t drawn;
	int64_t since;
	size_t got;
	uint8_t hello[GATE_HELLO_LEN];
};

struct gate {
	struct gate_attr attr;
	const struct gate_answer *answer;
	uint32_t orders; /* given out so far */
	int32_t slots;
	struct caller *caller;
	struct pollfd *poll;
};

/* ---- listening ------------------------------------------------------------------------
 */

static bool is_any(const struct sockaddr *at)
{
	static const struct in6_addr any = IN6ADDR_ANY_INIT;

	if (at->sa_family == AF_INET)
		return ((const struct sockaddr_in *)at)->sin_addr.s_addr == INADDR_ANY;
	return memcmp(&((const struct sockaddr_in6 *)at)->sin6_addr, &any, sizeof(any)) ==
	       0;
}

static int listen_at(const struct addrinfo *ai, char why[GATE_WHY], const char *place)
{
	const int one = 1;
	int fd;

	if (is_any(ai->ai_addr)) {
		snprintf(why, GATE_WHY, "%.100s names no host: others can't go there",
			 place);
		return -1;
	}
	fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1024)) {
		snprintf(why, GATE_WHY, "listening at %.100s: %.80s", place,
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

/* At one of the places; -1 with why. */
static int listen_place(const char *place, struct gate_answer *answer, char why[GATE_WHY])
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_NUMERICSERV};
	char host[FT_DIAL_HOST], port[FT_DIAL_PORT];
	struct addrinfo *list = NULL;
	int fd = -1, rc;

	if (!ft_dial_parse(place, 1, host, port)) {
		snprintf(why, GATE_WHY, "\"%.100s\" is not host:port", place);
		return -1;
	}
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc) {
		snprintf(why, GATE_WHY, "%.100s: %.80s", place, gai_strerror(rc));
		return -1;
	}
	for (const struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next) {
		struct sockaddr_storage at = {0};

		if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
			continue;
		fd = listen_at(ai, why, place);
		memcpy(&at, ai->ai_addr, ai->ai_addrlen);
		if (fd >= 0)
			meet_card_put(&at, answer->card);
		answer->card_len = MEET_CARD_LEN;
	}
	freeaddrinfo(list);
	return fd;
}

int gate_listen(const char *places, struct gate_answer *answer, char why[GATE_WHY])
{
	int fd = -1;

	snprintf(why, GATE_WHY, "no place is named");
	for (const char *at = places; *at && fd < 0;) {
		const size_t len = strcspn(at, ",");
		char place[FT_DIAL_HOST + FT_DIAL_PORT];

		snprintf(place, sizeof(place), "%.*s", (int)len, at);
		fd = listen_place(place, answer, why);
		at += len + (at[len] == ',');
	}
	return fd;
}

/* ---- letting in -----------------------------------------------------------------------
 */

static void caller_drop(struct caller *c)
{
	close(c->fd);
	*c = (struct caller){.fd = -1};
}

/* What fits into a socket that nothing was written to. */
static bool caller_tell(const struct caller *c, const struct gate_answer *answer)
{
	uint8_t buf[GATE_ANSWER_LEN];

	gate_answer_put(buf, answer);
	return send(c->fd, buf, sizeof(buf), MSG_NOSIGNAL) == (ssize_t)sizeof(buf);
}

static void caller_refuse(struct caller *c, const char *text)
{
	struct gate_answer answer = {.result = WEFT_ERR_MISMATCH};

	snprintf(answer.text, sizeof(answer.text), "%s", text);
	caller_tell(c, &answer);
	caller_drop(c);
}

static void gate_judge(struct gate *g, struct caller *c)
{
	const struct gate_hello *wanted = &g->attr.wanted;
	struct gate_hello hello;
	char text[GATE_TEXT];

	/* Strangers hear nothing. */
	if (!gate_hello_get(c->hello, &hello) ||
	    memcmp(hello.job, wanted->job, sizeof(hello.job)) != 0) {
		caller_drop(c);
		return;
	}
	if (hello.major != wanted->major || hello.minor != wanted->minor) {
		snprintf(text, sizeof(text),
			 "the newcomer has version %u.%u of the library, the "
			 "communicator %u.%u: use the same",
			 hello.major, hello.minor, wanted->major, wanted->minor);
		caller_refuse(c, text);
		return;
	}
	if (hello.sign != wanted->sign) {
		snprintf(text, sizeof(text),
			 "weft_grow_opts.sign of the newcomer is %llu, that of the "
			 "communicator %llu: they do not work on the same",
			 (unsigned long long)hello.sign,
			 (unsigned long long)wanted->sign);
		caller_refuse(c, text);
		return;
	}
	c->drawn = hello.drawn;
	c->held = true;
	/* Who says hello and ends would be counted, and missed by all. */
	if (!caller_tell(c, &(struct gate_answer){.result = WEFT_ERR_BUSY}))
		caller_drop(c);
}

static void caller_enters(struct gate *g, struct caller *c)
{
	/* Somebody whose connection broke comes again. */
	for (int32_t i = 0; i < g->slots; i++) {
		struct caller *other = &g->caller[i];

		if (other->in && other->drawn == c->drawn)
			caller_drop(other);
	}
	c->in = true;
	c->order = g->orders++;
}

static void caller_read(struct gate *g, struct caller *c)
{
	uint8_t more;
	const ssize_t n =
		c->held ? recv(c->fd, &more, 1, 0)
			: recv(c->fd, c->hello + c->got, sizeof(c->hello) - c->got, 0);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	/* Whoever is in has nothing to say: it has gone. */
	if (n <= 0 || c->in) {
		caller_drop(c);
		return;
	}
	if (c->held) {
		caller_enters(g, c);
		return;
	}
	c->got += (size_t)n;
	if (c->got == sizeof(c->hello))
		gate_judge(g, c);
}

static int32_t gate_in(const struct gate *g)
{
	int32_t in = 0;

	for (int32_t i = 0; i < g->slots; i++)
		in += g->caller[i].in;
	return in;
}

/* Callers that say nothing keep no newcomer out. */
static void gate_make_room(struct gate *g, int64_t now)
{
	struct caller *oldest = NULL;

	for (int32_t i = 0; i < g->slots; i++) {
		struct caller *c = &g->caller[i];

		if (c->fd < 0)
			return;
		if (!c->in && (!oldest || c->since < oldest->since))
			oldest = c;
	}
	if (oldest && now - oldest->since >= GATE_ROOM_US)
		caller_drop(oldest);
}

static void gate_accept(struct gate *g, int64_t now)
{
	gate_make_room(g, now);
	for (int32_t i = 0; i < g->slots; i++) {
		int fd;

		if (g->caller[i].fd >= 0)
			continue;
		fd = accept4(g->attr.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		g->caller[i] = (struct caller){.fd = fd, .since = now};
	}
}

static void gate_turn(struct gate *g, int wait_ms)
{
	int64_t now;

	g->poll[0] = (struct pollfd){.fd = g->attr.listener, .events = POLLIN};
	for (int32_t i = 0; i < g->slots; i++)
		g->poll[i + 1] = (struct pollfd){.fd = g->caller[i].fd, .events = POLLIN};
	(void)poll(g->poll, (nfds_t)g->slots + 1, boot_wait_ms(g->attr.until, wait_ms));
	now = boot_clock_us();
	for (int32_t i = 0; i < g->slots; i++) {
		struct caller *c = &g->caller[i];

		/* Hellos can't end others' slots but those that are in already. */
		if (c->fd >= 0 && c->fd == g->poll[i + 1].fd && g->poll[i + 1].revents)
			caller_read(g, c);
		if (c->fd >= 0 && !c->in && now - c->since > GATE_STRANGER_US)
			caller_drop(c);
	}
	if (g->poll[0].revents)
		gate_accept(g, now);
}

/* In the order in which they came. Who has gone meanwhile is missed where all meet. */
static void gate_welcome(struct gate *g)
{
	for (int32_t i = 0; i < g->slots; i++) {
		struct gate_answer answer = *g->answer;
		const struct caller *c = &g->caller[i];

		if (!c->in)
			continue;
		answer.rank = g->attr.first;
		for (int32_t k = 0; k < g->slots; k++)
			answer.rank += g->caller[k].in && g->caller[k].order < c->order;
		/* More than are let in came in the last moment: they dial again. */
		if (answer.rank < answer.size)
			caller_tell(c, &answer);
	}
}

enum weft_result gate_admit(const struct gate_attr *attr,
			    const struct gate_answer *answer, char why[GATE_WHY])
{
	struct gate g = {.attr = *attr, .answer = answer};
	enum weft_result result = WEFT_SUCCESS;

	g.slots = attr->count + GATE_PENDING;
	g.caller = calloc((size_t)g.slots, sizeof(*g.caller));
	g.poll = calloc((size_t)g.slots + 1, sizeof(*g.poll));
	if (!g.caller || !g.poll) {
		free(g.caller);
		free(g.poll);
		snprintf(why, GATE_WHY, "no memory for %d newcomers", attr->count);
		return WEFT_ERR_NOMEM;
	}
	for (int32_t i = 0; i < g.slots; i++)
		g.caller[i].fd = -1;
	do {
		gate_turn(&g, GATE_LOOK_MS);
		/* Nobody of them has gone meanwhile. */
		if (gate_in(&g) >= attr->count)
			gate_turn(&g, 0);
		if (gate_in(&g) < attr->count && boot_clock_us() >= attr->until)
			result = WEFT_ERR_TIMEOUT;
	} while (gate_in(&g) < attr->count && result == WEFT_SUCCESS);
	if (result == WEFT_SUCCESS)
		gate_welcome(&g);
	else
		snprintf(why, GATE_WHY, "%d of %d newcomers came in time", gate_in(&g),
			 attr->count);
	for (int32_t i = 0; i < g.slots; i++) {
		if (g.caller[i].fd >= 0)
			close(g.caller[i].fd);
	}
	free(g.caller);
	free(g.poll);
	return result;
}

/* ---- a newcomer -----------------------------------------------------------------------
 */

/* One answer; false: it hung up before, or time is over. */
static bool ask_read(int fd, int64_t until, struct gate_answer *answer)
{
	uint8_t in[GATE_ANSWER_LEN];
	size_t got = 0;

	while (got < sizeof(in)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int rc = poll(&p, 1, boot_wait_ms(until, GATE_LOOK_MS));
		const ssize_t n = rc > 0 ? recv(fd, in + got, sizeof(in) - got, 0) : -1;

		if (rc > 0 && n <= 0 && !(n < 0 && (errno == EAGAIN || errno == EINTR)))
			return false;
		if (n > 0)
			got += (size_t)n;
		else if (boot_clock_us() >= until)
			return false;
	}
	return gate_answer_get(in, answer);
}

/* What who listens there says in the end. */
static bool ask_once(int fd, const struct gate_hello *hello, int64_t until,
		     struct gate_answer *answer)
{
	const uint8_t there = 1;
	uint8_t out[GATE_HELLO_LEN];

	gate_hello_put(out, hello);
	if (send(fd, out, sizeof(out), MSG_NOSIGNAL) != (ssize_t)sizeof(out) ||
	    !ask_read(fd, until, answer))
		return false;
	if (answer->result != WEFT_ERR_BUSY)
		return true;
	return send(fd, &there, 1, MSG_NOSIGNAL) == 1 && ask_read(fd, until, answer);
}

enum weft_result gate_ask(const char *places, const struct gate_hello *hello,
			  int64_t until, struct gate_answer *answer, char why[GATE_WHY])
{
	enum weft_result result = WEFT_ERR_TIMEOUT;
	struct ft_dial d;

	if (ft_dial_init(&d, places, GATE_ATTEMPT_US)) {
		snprintf(why, GATE_WHY,
			 "the place is \"%.150s\": it must be HOST:PORT or "
			 "[IPV6]:PORT, or several separated by commas",
			 places);
		return WEFT_ERR_ARG;
	}
	snprintf(why, GATE_WHY, "nobody was there");
	while (result == WEFT_ERR_TIMEOUT && boot_clock_us() < until) {
		struct pollfd p = {.fd = d.fd, .events = POLLOUT};
		const int64_t next = d.until < until ? d.until : until;
		const bool ready = poll(&p, 1, boot_wait_ms(next, GATE_LOOK_MS)) > 0;
		const int fd = ft_dial_step(&d, ready, boot_clock_us());

		if (fd < 0) {
			if (d.why[0])
				snprintf(why, GATE_WHY, "%s", d.why);
			continue;
		}
		if (ask_once(fd, hello, until, answer)) {
			result = answer->result;
			snprintf(why, GATE_WHY, "%s", answer->text);
		} else {
			snprintf(why, GATE_WHY,
				 "who listens there let it wait, or hung up");
			ft_dial_again(&d, boot_clock_us());
		}
		close(fd);
	}
	ft_dial_fini(&d);
	return result;
}
