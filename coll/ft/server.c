/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See server.h. One thread waits for all sockets. What it says is written at once as far
 * as the socket takes it; a connection ends only between two rounds, since the machine
 * may say something to anybody while one is read.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/ft/conns.h"
#include "coll/ft/dial.h"
#include "coll/ft/server.h"
#include "coll/ft/store.h"

enum {
	TICK_US = 50000,
	/* The machine's time goes on by so much at most from one round to the next: where
	 * this process did not run, or waited for its disk, what the members said
	 * meanwhile has not been read yet, so their silence is no silence. */
	ROUND_US = 100000,
	EVENTS = 64,
	ACCEPTS = 64, /* in a round */
	STRANGERS = 1024,
	FILES_SPARED = 64, /* of the process's limit */
	BIND_US = 2000000, /* the address of one that was killed is free soon */
};

struct ft_server {
	struct ft_server_attr attr;
	pthread_mutex_t lock; /* of all that status() reads */
	atomic_bool stopping;
	int listen_fd, epoll_fd, wake_fd;
	bool deaf; /* no descriptors are left: not listening */
	char address[FT_SERVER_ADDRESS];
	struct ft_store *store;
	struct ft_coord coord;
	struct ft_conns conns;
	struct ft_conn *hearing; /* whose message is heard */
	int64_t real, now;	 /* the clock at this round, and the machine's time */
	int64_t ticked, done_at;
	uint32_t conns_most;
	enum ft_coord_state noted;
	struct ft_epoch noted_epoch;
	struct ft_server_status count; /* the counters in it */
};

/* ---- the machine's side ------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void note(const struct ft_server *s,
						       const char *fmt, ...)
{
	char line[200];
	va_list ap;

	if (!s->attr.note)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	s->attr.note(s->attr.note_arg, line);
}

static void say(void *arg, const struct ft_msg *msg)
{
	struct ft_server *s = arg;
	struct ft_conn *c = ft_conns_of(&s->conns, msg->id);

	if (!c)
		return; /* it asks again when it is back */
	ft_stream_say(&c->stream, msg);
	if (ft_stream_write(&c->stream) != FT_STREAM_OPEN || ft_stream_waits(&c->stream))
		ft_conns_mark(&s->conns, c);
}

static bool save(void *arg, enum ft_saved what, const struct ft_durable *d)
{
	struct ft_server *s = arg;

	return ft_store_save(s->store, what, d);
}

/* What a connection says must come from one member, and be what members say. */
static void hear(void *arg, const struct ft_msg *msg)
{
	struct ft_server *s = arg;
	struct ft_conn *c = s->hearing, *before = NULL;

	if (msg->type > FT_LEAVE || (c->id && c->id != msg->id)) {
		c->stream.state = FT_STREAM_BAD;
		return;
	}
	if (c->id == 0 && !ft_conns_name(&s->conns, c, msg->id, &before)) {
		c->stream.state = FT_STREAM_MEMORY;
		return;
	}
	if (before) {
		before->stream.state = FT_STREAM_EOF;
		ft_conns_mark(&s->conns, before);
	}
	ft_conns_heard(&s->conns, c, s->now);
	ft_coord_hear(&s->coord, msg, s->now);
}

/* ---- connections ------------------------------------------------------------------- */

static bool watch(const struct ft_server *s, int fd, uint32_t events, void *what, int op)
{
	struct epoll_event e = {.events = events, .data.ptr = what};

	return epoll_ctl(s->epoll_fd, op, fd, &e) == 0;
}

static void drop(struct ft_server *s, struct ft_conn *c)
{
	enum ft_stream_state state = c->stream.state;

	if (state == FT_STREAM_SLOW)
		s->count.slow++;
	if (state == FT_STREAM_BAD || (c->id == 0 && state == FT_STREAM_OPEN))
		s->count.refused++;
	if (state == FT_STREAM_BAD || state == FT_STREAM_SLOW) {
		char peer[BOOT_ADDR_TEXT];

		boot_io_address(c->stream.fd, true, peer);
		note(s, "%s: %s", peer, ft_stream_state_name(state));
	}
	ft_conns_drop(&s->conns, c, s->now);
}

/* The stranger that has been silent longest makes room for others. */
static void drop_stranger(struct ft_server *s)
{
	struct ft_conn *c = s->conns.first;

	while (c && (c->id || c->dirty))
		c = c->next;
	if (c)
		ft_conns_mark(&s->conns, c);
	if (c)
		c->stream.state = FT_STREAM_BAD;
}

static void accept_one(struct ft_server *s, int fd)
{
	struct ft_conn *c;

	s->count.accepted++;
	if (s->conns.count >= s->conns_most || boot_io_prepare(fd)) {
		s->count.refused++;
		close(fd);
		return;
	}
	if (s->conns.strangers >= STRANGERS)
		drop_stranger(s);
	c = ft_conns_add(&s->conns, fd, s->attr.job, s->now);
	if (!c)
		return;
	if (s->attr.out_most)
		c->stream.out_most = s->attr.out_most;
	c->events = EPOLLIN;
	if (!watch(s, fd, c->events, c, EPOLL_CTL_ADD))
		ft_conns_drop(&s->conns, c, s->now);
}

static void accept_some(struct ft_server *s)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			accept_one(s, fd);
			continue;
		}
		/* Nothing can be accepted until something was closed: until the next
		 * tick, or the loop would spin. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS)
			s->deaf = watch(s, s->listen_fd, 0, NULL, EPOLL_CTL_DEL);
		return;
	}
}

static void read_conn(struct ft_server *s, struct ft_conn *c, uint32_t events)
{
	s->hearing = c;
	if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		ft_stream_read(&c->stream, hear, s);
	if (events & EPOLLOUT)
		ft_stream_write(&c->stream);
	s->hearing = NULL;
	ft_conns_mark(&s->conns, c);
}

/* Between two rounds: ends what has ended, and asks to be woken where something waits. */
static void settle(struct ft_server *s)
{
	struct ft_conn *c;

	while ((c = ft_conns_marked(&s->conns)) != NULL) {
		uint32_t events = EPOLLIN;

		if (c->stream.state != FT_STREAM_OPEN) {
			drop(s, c);
			continue;
		}
		if (ft_stream_waits(&c->stream))
			events |= EPOLLOUT;
		if (events == c->events)
			continue;
		c->events = events;
		if (!watch(s, c->stream.fd, events, c, EPOLL_CTL_MOD))
			drop(s, c);
	}
}

/* Who says nothing: strangers soon, members long after they count as dead. */
static void drop_silent(struct ft_server *s)
{
	int64_t known_us = 2 * s->attr.silence_us, strange_us = s->attr.stranger_us;
	int64_t least = known_us < strange_us ? known_us : strange_us;
	struct ft_conn *next;

	for (struct ft_conn *c = s->conns.first; c && s->now - c->heard >= least;
	     c = next) {
		next = c->next;
		if (s->now - c->heard >= (c->id ? known_us : strange_us))
			drop(s, c);
	}
}

static void find_lost(struct ft_server *s)
{
	uint64_t id;

	while ((id = ft_conns_gone(&s->conns, s->now, s->attr.return_us)) != 0) {
		if (ft_roster_find(&s->coord.d.active, id) >= 0) {
			s->count.lost++;
			note(s,
			     "member %016" PRIx64
			     ": its connection broke, and it did not return",
			     id);
		}
		ft_coord_lost(&s->coord, id, s->now);
	}
}

/* ---- the loop ---------------------------------------------------------------------- */

static void note_changes(struct ft_server *s)
{
	const struct ft_coord *c = &s->coord;

	if (c->state != s->noted)
		note(s, "state %s, step %" PRIu64, ft_coord_state_name(c->state),
		     c->d.commit.step);
	if (!ft_epoch_same(c->d.active.epoch, s->noted_epoch))
		note(s, "epoch %" PRIx64 ".%" PRIu64 ": %u members",
		     c->d.active.epoch.term, c->d.active.epoch.seq, c->d.active.count);
	s->noted = c->state;
	s->noted_epoch = c->d.active.epoch;
}

static void advance(struct ft_server *s)
{
	int64_t real = boot_clock_us(), us = real - s->real;

	s->real = real;
	s->now += us > ROUND_US ? ROUND_US : us;
}

static void tick(struct ft_server *s)
{
	if (s->real - s->ticked < TICK_US)
		return;
	s->ticked = s->real;
	if (s->deaf)
		s->deaf = !watch(s, s->listen_fd, EPOLLIN, NULL, EPOLL_CTL_ADD);
	find_lost(s);
	ft_coord_tick(&s->coord, s->now);
	drop_silent(s);
}

/* Whether run() goes on. */
static bool goes_on(struct ft_server *s, int *rc)
{
	if (ft_store_lost(s->store)) {
		*rc = -ESTALE;
		return false;
	}
	switch (s->coord.state) {
	case FT_COORD_OVER:
		*rc = -ESTALE;
		return false;
	case FT_COORD_BROKEN:
		*rc = -EIO;
		return false;
	case FT_COORD_DONE: /* some may not have heard yet that they left */
		if (s->done_at == 0)
			s->done_at = s->now;
		return s->conns.count > s->conns.strangers &&
		       s->now - s->done_at < 2 * s->attr.silence_us;
	default:
		return true;
	}
}

static void round_of(struct ft_server *s, const struct epoll_event *events, int count)
{
	advance(s);
	for (int i = 0; i < count; i++) {
		if (!events[i].data.ptr)
			accept_some(s);
		else if (events[i].data.ptr != s)
			read_conn(s, events[i].data.ptr, events[i].events);
	}
	/* Ended ones go first: silence is looked for among those that are left. */
	settle(s);
	tick(s);
	settle(s);
	note_changes(s);
}

static void say_why(const struct ft_server *s, int rc, char why[FT_SERVER_WHY])
{
	*why = '\0';
	if (rc == -ESTALE && ft_store_lost(s->store))
		snprintf(why, FT_SERVER_WHY, "%.500s", ft_store_why(s->store));
	else if (rc == -ESTALE)
		snprintf(why, FT_SERVER_WHY,
			 "another coordinator of the job has taken over: its members "
			 "don't listen to this one any more");
	else if (rc == -EIO)
		snprintf(why, FT_SERVER_WHY, "%.500s",
			 *ft_store_why(s->store) ? ft_store_why(s->store) : "no memory");
	else if (rc)
		snprintf(why, FT_SERVER_WHY, "waiting for connections: %s",
			 strerror(-rc));
}

int ft_server_run(struct ft_server *s, char why[FT_SERVER_WHY])
{
	struct epoll_event events[EVENTS];
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	while (!atomic_load(&s->stopping) && goes_on(s, &rc)) {
		int count;

		pthread_mutex_unlock(&s->lock);
		count = epoll_wait(s->epoll_fd, events, EVENTS, TICK_US / 1000);
		pthread_mutex_lock(&s->lock);
		if (count < 0 && errno != EINTR) {
			rc = -errno;
			break;
		}
		round_of(s, events, count);
	}
	say_why(s, rc, why);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void ft_server_stop(struct ft_server *s)
{
	const uint64_t one = 1;
	int before = errno;

	atomic_store(&s->stopping, true);
	(void)!write(s->wake_fd, &one, sizeof(one));
	errno = before;
}

/* ---- opening and closing ----------------------------------------------------------- */

static void set_defaults(struct ft_server_attr *a)
{
	const int64_t silence = a->silence_us ? a->silence_us : FT_SERVER_SILENCE_US;

	a->silence_us = silence;
	a->group_size = a->group_size ? a->group_size : 1;
	a->conns_most = a->conns_most ? a->conns_most : 2 * FT_MEMBERS_MAX;
	a->return_us = a->return_us ? a->return_us : silence / 4;
	a->prepare_us = a->prepare_us ? a->prepare_us : silence;
	a->rebuild_us = a->rebuild_us ? a->rebuild_us : silence;
	a->join_us = a->join_us ? a->join_us : 2 * silence;
	a->blame_us = a->blame_us ? a->blame_us : silence / 10;
	a->stranger_us = a->stranger_us ? a->stranger_us : FT_SERVER_STRANGER_US;
}

static int check_attr(const struct ft_server_attr *a, char *why)
{
	static const uint8_t none[FT_JOB_LEN];
	const char *what = NULL;

	if (memcmp(a->job, none, sizeof(none)) == 0)
		what = "the job has no secret";
	else if (a->size < 1 || a->size > FT_MEMBERS_MAX)
		what = "the number of members that the first epoch waits for is not 1 to "
		       "4096";
	else if (a->group_size > FT_MEMBERS_MAX)
		what = "a group has more than 4096 members";
	else if (a->silence_us < 0 || a->return_us < 0 || a->prepare_us < 0 ||
		 a->rebuild_us < 0 || a->join_us < 0 || a->blame_us < 0 ||
		 a->stranger_us < 0)
		what = "a time is negative";
	if (!what)
		return 0;
	snprintf(why, FT_SERVER_WHY, "%s", what);
	return -EINVAL;
}

static int open_listener(struct ft_server *s, char *why)
{
	char host[FT_DIAL_HOST], port[FT_DIAL_PORT];
	int64_t until = boot_clock_us() + BIND_US;
	const char *what = "";

	if (!s->attr.listen || !ft_dial_parse(s->attr.listen, 0, host, port)) {
		snprintf(why, FT_SERVER_WHY,
			 "the address to listen at is \"%.200s\": it must be HOST:PORT "
			 "or [IPV6]:PORT; port 0 takes one that is free",
			 s->attr.listen ? s->attr.listen : "");
		return -EINVAL;
	}
	s->listen_fd = boot_io_listen(host, port, &what);
	while (s->listen_fd < 0 && errno == EADDRINUSE && boot_clock_us() < until) {
		usleep(20000);
		s->listen_fd = boot_io_listen(host, port, &what);
	}
	if (s->listen_fd < 0) {
		int rc = -errno;

		snprintf(why, FT_SERVER_WHY,
			 "can't listen at %.200s: %s: %s: it must be an address of this "
			 "host "
			 "and a free port; port 0 takes one that is free",
			 s->attr.listen, what, strerror(-rc));
		return rc;
	}
	boot_io_address(s->listen_fd, false, s->address);
	return 0;
}

static int open_store(struct ft_server *s, const struct ft_durable **kept, char *why)
{
	int rc = ft_store_open(s->attr.state ? s->attr.state : "",
			       s->attr.listen ? s->attr.listen : "", s->attr.job,
			       &s->store, kept, why);

	if (rc == 0 && s->attr.first && *kept) {
		snprintf(why, FT_SERVER_WHY,
			 "%.400s is there, so this is not the job's first coordinator: "
			 "start it as one that goes on",
			 s->attr.state);
		return -EEXIST;
	}
	return rc;
}

static int open_machine(struct ft_server *s, const struct ft_durable *kept, char *why)
{
	const struct ft_coord_out out = {.arg = s, .say = say, .save = save};
	struct ft_coord_attr attr = {
		.fresh = s->attr.first,
		.size = s->attr.size,
		.group_size = s->attr.group_size,
		.lineage = kept ? ft_lineage(kept->term) : 0,
		.silence_us = s->attr.silence_us,
		.prepare_us = s->attr.prepare_us,
		.rebuild_us = s->attr.rebuild_us,
		.join_us = s->attr.join_us,
		.blame_us = s->attr.blame_us,
	};

	while (attr.lineage == 0) {
		if (getrandom(&attr.lineage, sizeof(attr.lineage), 0) < 0 &&
		    errno != EINTR) {
			snprintf(why, FT_SERVER_WHY, "no random numbers: %s",
				 strerror(errno));
			return -errno;
		}
	}
	s->real = s->now = boot_clock_us();
	if (ft_coord_init(&s->coord, &attr, &out, kept, s->now))
		return 0;
	say_why(s, -EIO, why);
	return -EIO;
}

static int open_polls(struct ft_server *s, char *why)
{
	struct rlimit files;

	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->wake_fd < 0 || s->epoll_fd < 0 ||
	    !watch(s, s->listen_fd, EPOLLIN, NULL, EPOLL_CTL_ADD) ||
	    !watch(s, s->wake_fd, EPOLLIN, s, EPOLL_CTL_ADD)) {
		int rc = -errno;

		snprintf(why, FT_SERVER_WHY, "can't wait for connections: %s",
			 strerror(-rc));
		return rc;
	}
	s->conns_most = s->attr.conns_most;
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > 2 * FILES_SPARED &&
	    files.rlim_cur - FILES_SPARED < s->conns_most)
		s->conns_most = (uint32_t)(files.rlim_cur - FILES_SPARED);
	return 0;
}

int ft_server_open(const struct ft_server_attr *attr, struct ft_server **server,
		   char why[FT_SERVER_WHY])
{
	const struct ft_durable *kept = NULL;
	struct ft_server *s;
	int rc = check_attr(attr, why);

	if (rc)
		return rc;
	s = calloc(1, sizeof(*s));
	if (!s) {
		snprintf(why, FT_SERVER_WHY, "no memory");
		return -ENOMEM;
	}
	s->attr = *attr;
	set_defaults(&s->attr);
	pthread_mutex_init(&s->lock, NULL);
	s->listen_fd = s->epoll_fd = s->wake_fd = -1;
	/* The file is written last: what failed before leaves nothing. */
	rc = open_store(s, &kept, why);
	if (rc == 0)
		rc = open_listener(s, why);
	if (rc == 0)
		rc = open_polls(s, why);
	if (rc == 0)
		rc = open_machine(s, kept, why);
	if (rc) {
		ft_server_close(s);
		return rc;
	}
	*server = s;
	return 0;
}

const char *ft_server_address(const struct ft_server *s)
{
	return s->address;
}

void ft_server_status(struct ft_server *s, struct ft_server_status *status)
{
	pthread_mutex_lock(&s->lock);
	*status = s->count;
	status->state = s->coord.state;
	status->term = s->coord.d.term;
	status->epoch = s->coord.d.active.epoch;
	status->commit = s->coord.d.commit;
	status->members = s->coord.d.active.count;
	status->conns = s->conns.count;
	status->conns_known = s->conns.count - s->conns.strangers;
	pthread_mutex_unlock(&s->lock);
}

void ft_server_close(struct ft_server *s)
{
	if (!s)
		return;
	ft_conns_fini(&s->conns);
	ft_coord_fini(&s->coord);
	ft_store_close(s->store);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
