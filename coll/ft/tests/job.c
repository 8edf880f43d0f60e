/* SPDX-License-Identifier: BSD-2-Clause */
/* See job.h. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll/ft/tests/job.h"
#include "util/tap.h"

enum { MS = 1000, LOOK_US = 2 * MS };

static int64_t now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

struct job *job_make(uint32_t size)
{
	char folder[sizeof(((struct job *)0)->folder)];
	struct job *job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (job == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	snprintf(folder, sizeof(folder), "%s/weft-ft-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder))
		tap_bail("%s: %s", folder, strerror(errno));
	memcpy(job->folder, folder, sizeof(folder));
	snprintf((char *)job->secret, sizeof(job->secret), "%.60s", folder);
	for (int i = 0; i < JOB_COORDS; i++) {
		struct job_coord *c = &job->coord[i];

		snprintf(c->state, sizeof(c->state), "%s/state%d", folder, i);
		snprintf(c->address, sizeof(c->address), "127.0.0.1:0");
		c->attr = (struct ft_server_attr){
			.size = size,
			.silence_us = 20000 * MS,
			.return_us = 300 * MS,
			.prepare_us = 10000 * MS,
			.rebuild_us = 10000 * MS,
			.join_us = 100 * MS,
		};
	}
	return job;
}

static void end_process(pid_t *pid)
{
	if (*pid <= 0)
		return;
	kill(*pid, SIGCONT);
	kill(*pid, SIGKILL);
	while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
		;
	*pid = 0;
}

void job_end(struct job *job)
{
	char command[sizeof(job->folder) + 20];

	for (int i = 0; i < JOB_MEMBERS; i++)
		end_process(&job->member[i].pid);
	for (int i = 0; i < JOB_COORDS; i++)
		end_process(&job->coord[i].pid);
	snprintf(command, sizeof(command), "rm -rf '%s'", job->folder);
	if (system(command))
		tap_diag("%s is left", job->folder);
	munmap(job, sizeof(*job));
}

/* A process that ends with the test. */
static pid_t start_process(void)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(1);
	}
	return pid;
}

/* ---- the coordinator --------------------------------------------------------------- */

struct watcher {
	struct job_coord *coord;
	struct ft_server *server;
};

static void *watch(void *arg)
{
	const struct watcher *w = arg;
	struct job_coord *c = w->coord;

	for (;;) {
		struct ft_server_status status;

		ft_server_status(w->server, &status);
		c->is = status.state;
		c->members = status.members;
		c->conns = status.conns;
		c->refused = status.refused;
		c->slow = status.slow;
		c->turns++;
		usleep(LOOK_US);
	}
	return NULL;
}

static void note(void *arg, const char *line)
{
	printf("# coordinator %s: %s\n", (const char *)arg, line);
	fflush(stdout);
}

static void coord_main(struct job *job, struct job_coord *c, bool first)
{
	struct ft_server_attr attr = c->attr;
	struct watcher w = {.coord = c};
	struct ft_server *server;
	pthread_t thread;
	int rc;

	attr.listen = c->address;
	attr.state = c->state;
	attr.first = first;
	attr.note = getenv("WEFT_TEST_VERBOSE") ? note : NULL;
	attr.note_arg = c->address;
	memcpy(attr.job, job->secret, sizeof(attr.job));
	rc = ft_server_open(&attr, &server, c->why);
	if (rc) {
		c->up = rc;
		_exit(1);
	}
	snprintf(c->address, sizeof(c->address), "%s", ft_server_address(server));
	w.server = server;
	if (pthread_create(&thread, NULL, watch, &w))
		_exit(1);
	c->up = 1;
	rc = ft_server_run(server, c->why);
	c->up = rc ? rc : 2;
	_exit(0);
}

bool job_coord_start(struct job *job, int coord, bool first)
{
	struct job_coord *c = &job->coord[coord];
	int64_t until = now_s() + JOB_WAIT_S;
	pid_t pid;

	c->up = 0;
	c->turns = 0;
	pid = start_process();
	if (pid == 0)
		coord_main(job, c, first);
	c->pid = pid;
	while (c->up == 0 && now_s() < until)
		usleep(LOOK_US);
	job->names[0] = '\0';
	for (int i = 0; i < JOB_COORDS; i++) {
		size_t len = strlen(job->names);

		if (job->coord[i].pid)
			snprintf(job->names + len, sizeof(job->names) - len, "%s%s",
				 len ? "," : "", job->coord[i].address);
	}
	return c->up == 1;
}

void job_coord_kill(struct job *job, int coord)
{
	end_process(&job->coord[coord].pid);
}

int job_coord_wait(struct job *job, int coord)
{
	struct job_coord *c = &job->coord[coord];
	int64_t until = now_s() + JOB_WAIT_S;

	while ((c->up == 1 || c->up == 0) && now_s() < until)
		usleep(LOOK_US);
	end_process(&c->pid);
	return c->up == 2 ? 0 : c->up;
}

void job_coord_forget(struct job *job, int coord)
{
	unlink(job->coord[coord].state);
}

/* ---- a member ---------------------------------------------------------------------- */

/* Runs the step: it may be held within, until the epoch is over. */
static void run_step(struct ft_link *link, struct job_member *me,
		     const struct ft_link_event *e)
{
	bool good = true;

	me->runs++;
	me->count = e->roster.count;
	while (me->hold && !ft_link_stopped(link, e->roster.epoch))
		usleep(LOOK_US);
	if (atomic_exchange(&me->fail, false))
		good = false;
	ft_link_done(link, e->roster.epoch, good, good ? 0 : me->suspect);
}

static void take_event(struct ft_link *link, struct job_member *me,
		       const struct ft_link_event *e)
{
	switch (e->event) {
	case FT_JOINED:
		me->step = e->commit.step;
		me->joined = 1 + e->commit.step;
		break;
	case FT_RUN:
		run_step(link, me, e);
		break;
	case FT_STOP:
		me->stops++;
		break;
	case FT_COMMITTED:
		if (e->step < JOB_STEPS) {
			me->counted[e->step].seq = e->commit.epoch.seq;
			me->counted[e->step].live = e->live;
			me->counted[e->step].term = e->commit.epoch.term;
		}
		me->live = e->live;
		me->step = e->step;
		break;
	case FT_FENCED_OUT:
		me->reason = e->reason;
		me->fenced = 1;
		break;
	}
}

static void member_main(struct job *job, struct job_member *me, uint64_t sign)
{
	struct ft_link_attr attr = {
		.coordinator = job->names,
		.id = me->id,
		.sign = sign,
		.card_len = 5,
		.card = "where",
		.beat_us = 20 * MS,
		.silent_us = 500 * MS,
	};
	struct ft_link_event e = {0};
	char why[FT_LINK_WHY];
	struct ft_link *link;
	bool begun = false;

	memcpy(attr.job, job->secret, sizeof(attr.job));
	if (ft_link_open(&attr, &link, why)) {
		tap_diag("member: %s", why);
		_exit(1);
	}
	while (!me->fenced) {
		struct ft_link_status status;

		if (!begun && me->joined && me->step < me->until)
			begun = ft_link_begin(link) == 0;
		else if (!begun && me->leave)
			ft_link_leave(link);
		if (ft_link_wait(link, &e, 5 * MS) == 0) {
			if (e.event == FT_COMMITTED)
				begun = false;
			take_event(link, me, &e);
		}
		ft_link_status(link, &status);
		me->connects = status.connects;
	}
	ft_link_close(link);
	ft_roster_fini(&e.roster);
	_exit(0);
}

void job_member_start(struct job *job, int member, uint64_t sign)
{
	struct job_member *m = &job->member[member];
	pid_t pid;

	memset(m, 0, sizeof(*m));
	m->id = (uint64_t)member + 1;
	pid = start_process();
	if (pid == 0)
		member_main(job, m, sign);
	m->pid = pid;
}

void job_member_kill(struct job *job, int member)
{
	end_process(&job->member[member].pid);
}

/* ---- waiting ----------------------------------------------------------------------- */

bool job_wait(const _Atomic uint64_t *value, uint64_t least)
{
	int64_t until = now_s() + JOB_WAIT_S;

	while (*value < least && now_s() < until)
		usleep(LOOK_US);
	return *value >= least;
}

void job_run(struct job *job, uint32_t members, uint64_t step)
{
	for (int i = 0; i < JOB_MEMBERS; i++) {
		if (members & 1u << i)
			job->member[i].until = step;
	}
}

bool job_ran(struct job *job, uint32_t members, uint64_t step)
{
	bool good = true;

	job_run(job, members, step);
	for (int i = 0; i < JOB_MEMBERS; i++) {
		const struct job_member *m = &job->member[i];

		if (!(members & 1u << i) || job_wait(&m->step, step))
			continue;
		tap_diag("member %d: step %d, not %d; runs %d, stops %d, fenced %d", i,
			 (int)m->step, (int)step, (int)m->runs, (int)m->stops,
			 (int)m->fenced);
		good = false;
	}
	return good;
}

bool job_agrees(const struct job *job)
{
	bool good = true;

	for (int step = 1; step < JOB_STEPS; step++) {
		const struct job_member *one = NULL;
		uint64_t found = 0;

		for (int i = 0; i < JOB_MEMBERS; i++) {
			const struct job_member *m = &job->member[i];

			if (!m->counted[step].term)
				continue;
			found++;
			one = one ? one : m;
			if (m->counted[step].term == one->counted[step].term &&
			    m->counted[step].seq == one->counted[step].seq &&
			    m->counted[step].live == one->counted[step].live)
				continue;
			tap_diag("step %d: %d members of epoch %d at one, %d of %d at "
				 "member %d",
				 step, (int)one->counted[step].live,
				 (int)one->counted[step].seq, (int)m->counted[step].live,
				 (int)m->counted[step].seq, i);
			good = false;
		}
		if (one && found > one->counted[step].live)
			good = false;
	}
	return good;
}

bool job_leave(struct job *job, uint32_t members, int coord)
{
	bool good = true;

	for (int i = 0; i < JOB_MEMBERS; i++) {
		if (members & 1u << i)
			job->member[i].leave = true;
	}
	for (int i = 0; i < JOB_MEMBERS; i++) {
		if (!(members & 1u << i))
			continue;
		good &= job_wait(&job->member[i].fenced, 1) &&
			job->member[i].reason == FT_REASON_LEFT;
	}
	return good && job_coord_wait(job, coord) == 0;
}
