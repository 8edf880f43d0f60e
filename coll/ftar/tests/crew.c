/* SPDX-License-Identifier: BSD-2-Clause */
/* See crew.h. Member m contributes 1 << 8 m to each element: a sum says who did. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ft/server.h"
#include "coll/ftar/tests/crew.h"
#include "util/tap.h"

#define SECRET	   "the crew's"
#define ATTEMPT_US 4000000
#define MEMBER_US  ((int64_t)CREW_WAIT_S * 1000000)
#define CHUNK	   65536
#define SPARE	   16 /* elements behind the destination, which nobody writes */

static const char *crew_provider;

static void nap(void)
{
	const struct timespec ts = {.tv_nsec = 1000000};

	nanosleep(&ts, NULL);
}

/* ---- the coordinator
 * --------------------------------------------------------------------
 */

static void coordinator_run(struct crew *crew)
{
	struct ft_server_attr attr = {.listen = "127.0.0.1:0",
				      .first = true,
				      .size = crew->size,
				      .group_size = crew->group_size,
				      .silence_us = crew->silence_us,
				      .join_us = 200000};
	char why[FT_SERVER_WHY], state[80];
	struct ft_server *server;

	snprintf(state, sizeof(state), "%s/state", crew->folder);
	attr.state = state;
	memcpy(attr.job, SECRET, strlen(SECRET));
	if (ft_server_open(&attr, &server, why)) {
		fprintf(stderr, "coordinator: %s\n", why);
		_exit(1);
	}
	snprintf(crew->address, sizeof(crew->address), "%s", ft_server_address(server));
	atomic_store(&crew->up, 1);
	ft_server_run(server, why);
	ft_server_close(server);
	_exit(0);
}

/* ---- a member
 * ---------------------------------------------------------------------------
 */

static void member_note(struct crew_member *me, struct weft_ft *ft, uint64_t value)
{
	struct weft_ft_info info = {.size = sizeof(info)};
	uint8_t who = 0;

	weft_ft_info(ft, &info);
	for (int m = 0; m < CREW_MEMBERS; m++) {
		const uint8_t part = (uint8_t)(value >> (8 * m));

		if (part == 1)
			who |= (uint8_t)(1u << m);
		else if (part)
			atomic_fetch_add(&me->wrong, 1);
	}
	if (info.step < CREW_STEPS) {
		me->who[info.step] = who;
		me->live[info.step] = (uint8_t)info.members;
	}
	if (info.contributors != (uint32_t)__builtin_popcount(who))
		atomic_fetch_add(&me->wrong, 1);
	atomic_store(&me->runs, info.runs);
	atomic_store(&me->epochs, info.epochs);
	atomic_store(&me->buried, info.buried);
	atomic_store(&me->step, info.step);
}

static uint64_t member_gives(const struct crew_member *me, int m)
{
	const double part = (double)(UINT64_C(1) << (8 * m));
	uint64_t bits;

	memcpy(&bits, &part, sizeof(bits));
	return me->average ? bits : UINT64_C(1) << (8 * m);
}

/* The sum that a result stands for: averages divide by who contributed (G5). */
static uint64_t member_sum(const struct crew_member *me, struct weft_ft *ft,
			   uint64_t result)
{
	struct weft_ft_info info = {.size = sizeof(info)};
	double average;

	if (!me->average)
		return result;
	weft_ft_info(ft, &info);
	memcpy(&average, &result, sizeof(average));
	return (uint64_t)(average * info.contributors + 0.5);
}

static enum weft_result member_step(struct crew_member *me, struct weft_ft *ft, int m,
				    uint64_t step, uint64_t *src, uint64_t *dst)
{
	const uint64_t count = step == me->other_count_at ? me->count / 2 : me->count;
	const bool silent = step <= atomic_load(&me->silent);
	enum weft_result result;

	for (uint64_t i = 0; i < me->count; i++)
		src[i] = member_gives(me, m);
	for (uint64_t i = me->count; i < me->count + SPARE; i++)
		dst[i] = 77;
	do
		result = weft_ft_allreduce(
			ft, silent ? NULL : src, me->in_place && !silent ? src : dst,
			count, me->average ? WEFT_FP64 : WEFT_UINT64,
			me->average ? WEFT_AVG : WEFT_SUM, me->timeout_us);
	while (result == WEFT_ERR_TIMEOUT);
	if (result != WEFT_SUCCESS)
		return result;
	if (me->in_place && !silent)
		memcpy(dst, src, count * sizeof(*dst));
	for (uint64_t i = 0; i < count; i++) {
		if (dst[i] != dst[0])
			atomic_fetch_add(&me->wrong, 1);
	}
	for (uint64_t i = me->count; i < me->count + SPARE; i++) {
		if (dst[i] != 77)
			atomic_fetch_add(&me->wrong, 1);
	}
	member_note(me, ft, count ? member_sum(me, ft, dst[0]) : 0);
	return result;
}

static enum weft_result member_run(struct crew *crew, int m)
{
	struct crew_member *me = &crew->member[m];
	struct weft_ft_opts opts = WEFT_FT_OPTS_INIT;
	struct weft_ft_info info = {.size = sizeof(info)};
	enum weft_result result;
	struct weft_ft *ft;
	uint64_t *src = calloc(2 * me->count + SPARE + 1, sizeof(*src));
	uint64_t *dst = src + me->count;

	opts.coordinator = crew->address;
	opts.job = SECRET;
	opts.sign = me->sign;
	opts.group = me->group;
	opts.provider = crew_provider;
	opts.timeout_us = MEMBER_US;
	opts.attempt_us = ATTEMPT_US;
	opts.chunk = CHUNK;
	result = weft_ft_open(&opts, &ft);
	if (result != WEFT_SUCCESS)
		return result;
	weft_ft_info(ft, &info);
	atomic_store(&me->step, info.step);
	atomic_store(&me->joined, 1 + info.step);
	while (result == WEFT_SUCCESS) {
		const uint64_t step = atomic_load(&me->step);

		if (step < atomic_load(&me->until)) {
			result = member_step(me, ft, m, step + 1, src, dst);
			continue;
		}
		if (atomic_load(&me->leave))
			break;
		nap();
	}
	if (result == WEFT_SUCCESS)
		result = weft_ft_leave(ft, 0);
	/* Nor is one that failed for good waited for by the others. */
	else if (result == WEFT_ERR_MISMATCH && weft_ft_leave(ft, 0) != WEFT_SUCCESS)
		result = WEFT_ERR_INTERNAL;
	snprintf(me->text, sizeof(me->text), "%s", weft_error_detail());
	/* Who is out has left. */
	if ((result == WEFT_SUCCESS || result == WEFT_ERR_FENCED) &&
	    weft_ft_leave(ft, 0) != WEFT_SUCCESS) {
		result = WEFT_ERR_INTERNAL;
		snprintf(me->text, sizeof(me->text), "%s", weft_error_detail());
	}
	weft_ft_info(ft, &info);
	atomic_store(&me->buried, info.buried);
	weft_ft_close(ft);
	free(src);
	return result;
}

/* ---- the test's side
 * --------------------------------------------------------------------
 */

struct crew *crew_make(uint32_t size, int64_t silence_us, const char *provider)
{
	return crew_groups(size, 1, silence_us, provider);
}

struct crew *crew_groups(uint32_t size, uint32_t group_size, int64_t silence_us,
			 const char *provider)
{
	struct crew *crew = mmap(NULL, sizeof(*crew), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int64_t until = boot_clock_us() + MEMBER_US;
	pid_t pid;

	if (crew == MAP_FAILED)
		tap_bail("no memory");
	memset(crew, 0, sizeof(*crew));
	crew_provider = provider;
	snprintf(crew->folder, sizeof(crew->folder), "/tmp/weft-ftar-XXXXXX");
	if (!mkdtemp(crew->folder))
		tap_bail("no folder in /tmp");
	crew->size = size;
	crew->group_size = group_size;
	crew->silence_us = silence_us;
	for (int m = 0; m < CREW_MEMBERS; m++) {
		crew->member[m].count = 20000;
		crew->member[m].sign = 5;
		crew->member[m].group = (uint32_t)m / group_size;
	}
	fflush(stdout);
	/* The memory is the child's as well. */
	pid = fork();
	if (pid < 0)
		tap_bail("fork failed");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		coordinator_run(crew);
	}
	crew->coordinator = pid;
	while (!atomic_load(&crew->up) && boot_clock_us() < until)
		nap();
	if (!atomic_load(&crew->up))
		tap_bail("no coordinator");
	return crew;
}

void crew_start(struct crew *crew, int member)
{
	struct crew_member *me = &crew->member[member];
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_bail("fork failed");
	if (pid == 0) {
		enum weft_result result;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		result = member_run(crew, member);
		if (!me->text[0])
			snprintf(me->text, sizeof(me->text), "%s", weft_error_detail());
		atomic_store(&me->result, 1 + (int)result);
		_exit(0);
	}
	me->pid = pid;
}

void crew_signal(struct crew *crew, int member, int signal)
{
	kill(member < 0 ? crew->coordinator : crew->member[member].pid, signal);
	if (signal == SIGKILL && member >= 0) {
		waitpid(crew->member[member].pid, NULL, 0);
		crew->member[member].pid = 0;
	}
}

void crew_end(struct crew *crew)
{
	char name[100];

	for (int m = 0; m < CREW_MEMBERS; m++) {
		if (crew->member[m].pid > 0)
			crew_signal(crew, m, SIGKILL);
	}
	kill(crew->coordinator, SIGKILL);
	waitpid(crew->coordinator, NULL, 0);
	snprintf(name, sizeof(name), "rm -rf %s", crew->folder);
	if (system(name))
		printf("# %s failed\n", name);
	munmap(crew, sizeof(*crew));
}

bool crew_wait(const _Atomic uint64_t *value, uint64_t least)
{
	const int64_t until = boot_clock_us() + MEMBER_US;

	while (atomic_load(value) < least) {
		if (boot_clock_us() > until)
			return false;
		nap();
	}
	return true;
}

bool crew_steps(struct crew *crew, uint32_t mask, uint64_t step)
{
	const int64_t until = boot_clock_us() + MEMBER_US;
	bool good = true;

	for (int m = 0; m < CREW_MEMBERS; m++) {
		if (mask & 1u << m)
			atomic_store(&crew->member[m].until, step);
	}
	for (int m = 0; m < CREW_MEMBERS; m++) {
		struct crew_member *me = &crew->member[m];

		if (!(mask & 1u << m))
			continue;
		while (atomic_load(&me->step) < step && !atomic_load(&me->result) &&
		       boot_clock_us() < until)
			nap();
		if (atomic_load(&me->step) >= step)
			continue;
		printf("# member %d has done %llu steps of %llu: %s: %s\n", m,
		       (unsigned long long)atomic_load(&me->step),
		       (unsigned long long)step,
		       atomic_load(&me->result)
			       ? weft_strerror((enum weft_result)(me->result - 1))
			       : "it goes on",
		       me->text);
		good = false;
	}
	return good;
}

enum weft_result crew_result(struct crew *crew, int member)
{
	const int64_t until = boot_clock_us() + MEMBER_US;
	struct crew_member *me = &crew->member[member];

	while (!atomic_load(&me->result) && boot_clock_us() < until)
		nap();
	if (!atomic_load(&me->result)) {
		printf("# member %d does not end\n", member);
		return WEFT_ERR_TIMEOUT;
	}
	if (me->pid > 0)
		waitpid(me->pid, NULL, 0);
	me->pid = 0;
	return (enum weft_result)(atomic_load(&me->result) - 1);
}

bool crew_agrees(const struct crew *crew)
{
	bool good = true;

	for (int m = 0; m < CREW_MEMBERS; m++) {
		if (atomic_load(&crew->member[m].wrong)) {
			printf("# member %d has %d wrong elements\n", m,
			       atomic_load(&crew->member[m].wrong));
			good = false;
		}
	}
	for (int s = 1; s < CREW_STEPS; s++) {
		uint8_t who = 0, live = 0;

		for (int m = 0; m < CREW_MEMBERS; m++) {
			const struct crew_member *me = &crew->member[m];

			if (!me->live[s])
				continue;
			if (live && (me->who[s] != who || me->live[s] != live)) {
				printf("# step %d: member %d has %02x of %u, another "
				       "%02x of %u\n",
				       s, m, me->who[s], me->live[s], who, live);
				good = false;
			}
			who = me->who[s];
			live = me->live[s];
		}
	}
	return good;
}
