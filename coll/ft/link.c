/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See link.h. One lock guards the machine, the stream and what is told; the thread takes
 * it for each turn of its loop, and sleeps without it. Owner's calls write what the
 * machine says at once, so that a vote does not wait for the thread.
 */
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"
#include "coll/ft/dial.h"
#include "coll/ft/link.h"
#include "coll/ft/stream.h"

enum {
	TOLD_MAX = 8, /* one of each kind can wait */
	ATTEMPT_US = 3000000,
};

/* An event that waits to be taken; what it is about is read from the machine then. */
struct told {
	enum ft_event event;
	struct ft_commit commit;
	uint32_t live;
};

struct ft_link {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond; /* something was told */
	int wake_fd;	     /* the thread is to look */
	int told_fd;	     /* readable while something is told */
	uint8_t job[FT_JOB_LEN];
	int64_t silent_us;
	bool ending;
	struct ft_member member;
	struct ft_dial dial;
	struct ft_stream stream; /* fd -1: not connected */
	int64_t heard;
	int64_t asked; /* the coordinator asks for members' states since then, and has
			* said nothing else; 0: it doesn't */
	uint64_t connects;
	struct told told[TOLD_MAX];
	uint32_t tolds;
	/* The epoch of the step that is run; seq 0: none. Written under the lock, read
	 * without. */
	_Atomic uint64_t run_term, run_seq;
};

static void raise_fd(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof(one)); /* it only fails when it is raised already */
}

static void lower_fd(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
}

/* ---- what is told ------------------------------------------------------------------ */

/* Takes back an event that nobody took. */
static bool told_drop(struct ft_link *l, enum ft_event event)
{
	for (uint32_t i = 0; i < l->tolds; i++) {
		if (l->told[i].event != event)
			continue;
		memmove(&l->told[i], &l->told[i + 1],
			(l->tolds - i - 1) * sizeof(l->told[0]));
		if (--l->tolds == 0)
			lower_fd(l->told_fd);
		return true;
	}
	return false;
}

static bool told_has(const struct ft_link *l, enum ft_event event)
{
	for (uint32_t i = 0; i < l->tolds; i++) {
		if (l->told[i].event == event)
			return true;
	}
	return false;
}

/* A reader sees the epoch's term when it sees its number. */
static void run_epoch(struct ft_link *l, struct ft_epoch epoch)
{
	atomic_store_explicit(&l->run_seq, 0, memory_order_release);
	atomic_store_explicit(&l->run_term, epoch.term, memory_order_release);
	atomic_store_explicit(&l->run_seq, epoch.seq, memory_order_release);
}

static void tell(void *arg, enum ft_event event, const struct ft_member *m)
{
	struct ft_link *l = arg;
	bool unseen = false;

	if (event == FT_RUN)
		run_epoch(l, m->active.epoch);
	else if (event != FT_JOINED)
		run_epoch(l, (struct ft_epoch){0, 0});
	/* A RUN that was not taken is not stopped: it never was. */
	if (event != FT_JOINED)
		unseen = told_drop(l, FT_RUN);
	if ((event == FT_STOP && unseen) || told_has(l, event))
		return;
	l->told[l->tolds++] = (struct told){event, m->commit, m->live};
	if (l->tolds == 1)
		raise_fd(l->told_fd);
	pthread_cond_broadcast(&l->cond);
}

/* ---- the connection ---------------------------------------------------------------- */

static void say(void *arg, const struct ft_msg *msg)
{
	struct ft_link *l = arg;

	ft_stream_say(&l->stream, msg);
}

static void hear(void *arg, const struct ft_msg *msg)
{
	struct ft_link *l = arg;

	l->heard = boot_clock_us();
	if (msg->type != FT_QUERY && msg->type != FT_WAIT)
		l->asked = 0;
	else if (l->asked == 0)
		l->asked = l->heard;
	ft_dial_good(&l->dial);
	ft_member_hear(&l->member, msg);
}

/* What is written and not acknowledged for so long breaks the connection: the host at the
 * other end is gone, or the way to it. */
static void watch_peer(const struct ft_link *l, int fd)
{
	unsigned ms = (unsigned)((l->silent_us + 999) / 1000);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
}

static void connect_more(struct ft_link *l, bool ready, int64_t now)
{
	int fd = ft_dial_step(&l->dial, ready, now);

	if (fd < 0)
		return;
	watch_peer(l, fd);
	ft_stream_init(&l->stream, fd, l->job);
	l->asked = 0;
	l->connects++;
}

/* A coordinator that has not enough of the members may be one whom nobody else listens to
 * any more: where there are several places, the member looks at the others. */
static bool is_in_vain(const struct ft_link *l, int64_t now)
{
	return l->asked && now - l->asked >= l->silent_us && strchr(l->dial.names, ',');
}

static void check_stream(struct ft_link *l, int64_t now)
{
	struct ft_stream *s = &l->stream;

	if (s->fd < 0 || (s->state == FT_STREAM_OPEN && !is_in_vain(l, now)))
		return;
	snprintf(l->dial.why, sizeof(l->dial.why), "%.*s: %s%s%s",
		 (int)strcspn(l->dial.at, ","), l->dial.at,
		 s->state == FT_STREAM_OPEN ? "has not enough members to go on"
					    : ft_stream_state_name(s->state),
		 s->state == FT_STREAM_ERROR ? ": " : "",
		 s->state == FT_STREAM_ERROR ? strerror(s->error) : "");
	ft_stream_fini(s);
	ft_dial_again(&l->dial, now);
}

/* What the machine said is written; by the thread, if that fails. */
static void flush(struct ft_link *l)
{
	if (l->stream.fd >= 0 && (ft_stream_write(&l->stream) != FT_STREAM_OPEN ||
				  ft_stream_waits(&l->stream)))
		raise_fd(l->wake_fd);
}

/* ---- the thread -------------------------------------------------------------------- */

/* Whom the machine is done with needs no connection: the others see that it is gone. */
static bool is_over(const struct ft_link *l)
{
	return l->member.phase == FT_PHASE_OUT;
}

/* One turn; what the thread is to poll for then, and until when. */
static int64_t turn(struct ft_link *l, short ready, struct pollfd *poll_fd)
{
	int64_t now = boot_clock_us(), until = INT64_MAX;

	if (l->stream.fd < 0 && !is_over(l))
		connect_more(l, ready != 0, now);
	else if (ready & (POLLIN | POLLERR | POLLHUP))
		ft_stream_read(&l->stream, hear, l);
	if (l->stream.fd >= 0) {
		ft_member_tick(&l->member, now);
		ft_stream_write(&l->stream);
		if (is_over(l))
			ft_stream_fini(&l->stream);
	}
	check_stream(l, now);
	*poll_fd = (struct pollfd){.fd = -1};
	if (is_over(l))
		return until;
	if (l->stream.fd >= 0) {
		*poll_fd = (struct pollfd){.fd = l->stream.fd, .events = POLLIN};
		if (ft_stream_waits(&l->stream))
			poll_fd->events |= POLLOUT;
		return ft_member_next_tick(&l->member);
	}
	if (l->dial.fd >= 0)
		*poll_fd = (struct pollfd){.fd = l->dial.fd, .events = POLLOUT};
	return l->dial.until;
}

static void *link_main(void *arg)
{
	struct ft_link *l = arg;
	struct pollfd fds[2] = {{.fd = -1}, {.fd = l->wake_fd, .events = POLLIN}};

	pthread_mutex_lock(&l->lock);
	while (!l->ending) {
		int64_t until = turn(l, fds[0].revents, &fds[0]);

		fds[0].revents = fds[1].revents = 0;
		pthread_mutex_unlock(&l->lock);
		if (poll(fds, 2, boot_wait_ms(until, -1)) < 0)
			fds[0].revents = fds[1].revents = 0;
		if (fds[1].revents)
			lower_fd(l->wake_fd);
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

/* ---- opening and closing ----------------------------------------------------------- */

static int check_attr(const struct ft_link_attr *a, char *why)
{
	static const uint8_t none[FT_JOB_LEN];
	const char *what = NULL;

	if (memcmp(a->job, none, sizeof(none)) == 0)
		what = "the job has no secret";
	else if (a->sign == 0)
		what = "the sign of what is reduced is 0";
	else if (a->card_len > FT_CARD_MAX)
		what = "the member's address is too long";
	else if (a->beat_us < 0 || a->silent_us < 0)
		what = "a time is negative";
	if (!what)
		return 0;
	snprintf(why, FT_LINK_WHY, "%s", what);
	return -EINVAL;
}

static int draw_id(uint64_t *id)
{
	while (*id == 0) {
		if (getrandom(id, sizeof(*id), 0) < 0 && errno != EINTR)
			return -errno;
	}
	return 0;
}

static int init_member(struct ft_link *l, const struct ft_link_attr *a)
{
	const struct ft_member_out out = {.arg = l, .say = say, .tell = tell};
	struct ft_member_attr attr = {
		.self = {.id = a->id, .group = a->group, .card_len = a->card_len},
		.sign = a->sign,
		.beat_us = a->beat_us ? a->beat_us : FT_LINK_BEAT_US,
	};
	int rc = draw_id(&attr.self.id);

	memcpy(attr.self.card, a->card, a->card_len);
	if (rc == 0)
		ft_member_init(&l->member, &attr, &out);
	return rc;
}

static void init_locks(struct ft_link *l)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&l->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&l->cond, &attr);
	pthread_condattr_destroy(&attr);
}

static void link_free(struct ft_link *l)
{
	ft_stream_fini(&l->stream);
	ft_dial_fini(&l->dial);
	ft_member_fini(&l->member);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->told_fd >= 0)
		close(l->told_fd);
	pthread_cond_destroy(&l->cond);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* The thread takes none of the application's signals. */
static int start_thread(struct ft_link *l)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&l->thread, NULL, link_main, l);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -rc;
}

int ft_link_open(const struct ft_link_attr *attr, struct ft_link **link,
		 char why[FT_LINK_WHY])
{
	struct ft_link *l;
	int rc = check_attr(attr, why);

	if (rc)
		return rc;
	l = calloc(1, sizeof(*l));
	if (!l) {
		snprintf(why, FT_LINK_WHY, "no memory");
		return -ENOMEM;
	}
	init_locks(l);
	ft_stream_init(&l->stream, -1, l->job);
	ft_stream_fini(&l->stream);
	memcpy(l->job, attr->job, sizeof(l->job));
	l->silent_us = attr->silent_us ? attr->silent_us : FT_LINK_SILENT_US;
	l->heard = boot_clock_us();
	l->told_fd = -1;
	l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->wake_fd >= 0)
		l->told_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = l->told_fd < 0 ? -errno : 0;
	if (rc == 0)
		rc = init_member(l, attr);
	snprintf(why, FT_LINK_WHY, "%s", rc ? strerror(-rc) : "");
	if (rc == 0) {
		rc = ft_dial_init(&l->dial, attr->coordinator, ATTEMPT_US);
		snprintf(why, FT_LINK_WHY, "%s", l->dial.why);
	}
	if (rc == 0) {
		rc = start_thread(l);
		if (rc)
			snprintf(why, FT_LINK_WHY, "no thread: %s", strerror(-rc));
	}
	if (rc) {
		link_free(l);
		return rc;
	}
	*link = l;
	return 0;
}

void ft_link_close(struct ft_link *l)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->ending = true;
	pthread_mutex_unlock(&l->lock);
	raise_fd(l->wake_fd);
	pthread_join(l->thread, NULL);
	link_free(l);
}

/* ---- the owner's calls ------------------------------------------------------------- */

uint64_t ft_link_id(const struct ft_link *l)
{
	return l->member.attr.self.id;
}

int ft_link_begin(struct ft_link *l)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&l->lock);
	if (l->member.phase == FT_PHASE_OUT || l->member.leaving)
		rc = -ECONNABORTED;
	else if (!told_has(l, FT_COMMITTED) && ft_member_begin(&l->member))
		rc = 0;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void ft_link_done(struct ft_link *l, struct ft_epoch epoch, bool good, uint64_t suspect)
{
	pthread_mutex_lock(&l->lock);
	if (!told_has(l, FT_RUN))
		ft_member_done(&l->member, epoch, good, suspect);
	flush(l);
	pthread_mutex_unlock(&l->lock);
}

int ft_link_leave(struct ft_link *l)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&l->lock);
	if (l->member.phase == FT_PHASE_OUT)
		rc = -ECONNABORTED;
	else if (!told_has(l, FT_COMMITTED) && ft_member_leave(&l->member))
		rc = 0;
	flush(l);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int ft_link_give_up(struct ft_link *l)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&l->lock);
	if (l->member.phase == FT_PHASE_OUT) {
		rc = -ECONNABORTED;
	} else if (!told_has(l, FT_COMMITTED) && ft_member_give_up(&l->member)) {
		run_epoch(l, (struct ft_epoch){0, 0});
		told_drop(l, FT_RUN);
		rc = 0;
	}
	flush(l);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

static bool fill(struct ft_link *l, const struct told *told, struct ft_link_event *e)
{
	e->event = told->event;
	e->reason = told->event == FT_FENCED_OUT ? l->member.reason : FT_REASON_NONE;
	e->commit = told->commit;
	e->step = told->event == FT_RUN ? told->commit.step + 1 : told->commit.step;
	e->live = told->live;
	return ft_roster_copy(&e->roster, &l->member.active);
}

int ft_link_wait(struct ft_link *l, struct ft_link_event *event, int64_t timeout_us)
{
	int64_t until = boot_deadline(timeout_us);
	struct timespec at = {until / 1000000, until % 1000000 * 1000};
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	while (l->tolds == 0 && rc == 0 && timeout_us) {
		rc = until == BOOT_NEVER
			     ? pthread_cond_wait(&l->cond, &l->lock)
			     : pthread_cond_timedwait(&l->cond, &l->lock, &at);
	}
	rc = l->tolds ? 0 : -ETIMEDOUT;
	if (rc == 0 && !fill(l, &l->told[0], event))
		rc = -ENOMEM; /* it stays */
	if (rc == 0) {
		l->tolds--;
		memmove(&l->told[0], &l->told[1], l->tolds * sizeof(l->told[0]));
		if (l->tolds == 0)
			lower_fd(l->told_fd);
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int ft_link_fd(const struct ft_link *l)
{
	return l->told_fd;
}

bool ft_link_stopped(const struct ft_link *l, struct ft_epoch epoch)
{
	return atomic_load_explicit(&l->run_seq, memory_order_acquire) != epoch.seq ||
	       atomic_load_explicit(&l->run_term, memory_order_acquire) != epoch.term;
}

void ft_link_status(struct ft_link *l, struct ft_link_status *status)
{
	pthread_mutex_lock(&l->lock);
	*status = (struct ft_link_status){
		.phase = l->member.phase,
		.work = l->member.work,
		.reason = l->member.reason,
		.id = l->member.attr.self.id,
		.epoch = l->member.active.epoch,
		.commit = l->member.commit,
		.connected = l->stream.fd >= 0,
		.unheard_us = boot_clock_us() - l->heard,
		.connects = l->connects,
	};
	if (!status->connected)
		snprintf(status->why, sizeof(status->why), "%s",
			 l->dial.why[0] ? l->dial.why
					: "the first attempt to connect goes on");
	pthread_mutex_unlock(&l->lock);
}
