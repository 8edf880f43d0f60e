/* SPDX-License-Identifier: BSD-2-Clause */
/* A process as a host: its lock, its number in the network, its thread, and what a fork
 * does to them. */
#include "config.h"

#include "fabtests/emuverbs/host.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fabtests/emuverbs/conn.h"
#include "fabtests/emuverbs/fault.h"
#include "fabtests/emuverbs/late.h"
#include "fabtests/emuverbs/req.h"

#define EVENTS 16
/* Polls in vain after which a process gives its processor away, and for how long (ns). */
#define VAIN   64
#define MOMENT 200000
/* And after which nothing that it sends is held back. */
#define HASTE 8

struct emu_host emu = {.listen_fd = -1, .epoll_fd = -1, .wake_fd = -1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_cond_t completed;
static unsigned waiting; /* for it */
static atomic_uint vain;

void emu_lock(void)
{
	pthread_mutex_lock(&lock);
}

void emu_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void emu_wait(void)
{
	pthread_cond_wait(&changed, &lock);
}

void emu_changed(void)
{
	pthread_cond_broadcast(&changed);
}

void emu_host_fail(const char *why)
{
	fprintf(stderr, "emuverbs: %s\n", why);
	abort();
}

uint64_t emu_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint32_t emu_random(uint32_t below)
{
	emu.random ^= emu.random >> 12;
	emu.random ^= emu.random << 25;
	emu.random ^= emu.random >> 27;
	return (uint32_t)((emu.random * 0x2545f4914f6cdd1dull) >> 32) % below;
}

void emu_due(uint64_t when)
{
	if (when >= emu.due)
		return;
	emu.due = when;
	if (emu.running && !pthread_equal(pthread_self(), emu.thread))
		eventfd_write(emu.wake_fd, 1);
}

/* The whole of a small file, after what is there; -1: errno says why. */
static int file_append(const char *name, char **text, size_t *len)
{
	FILE *f = fopen(name, "re");
	char part[4096];
	size_t n;

	if (!f)
		return -1;
	while ((n = fread(part, 1, sizeof(part), f)) > 0) {
		char *more = realloc(*text, *len + n + 1);

		if (!more)
			emu_host_fail("out of memory");
		memcpy(more + *len, part, n);
		*text = more;
		*len += n;
		more[*len] = '\n';
	}
	fclose(f);
	return 0;
}

/* The devices' file and the one of faults are read as one text. */
static bool setup_read(void)
{
	static const char *const names[] = {"EMUVERBS_CONFIG", "EMUVERBS_FAULTS"};
	struct emu_setup_error error;
	char *text = NULL;
	size_t len = 0;
	bool good;

	for (unsigned i = 0; i < 2; i++) {
		const char *file = getenv(names[i]);
		size_t before = len;

		if (!file || !*file)
			continue;
		if (file_append(file, &text, &len) != 0) {
			fprintf(stderr, "emuverbs: %s=%s: %s; there are no devices\n",
				names[i], file, strerror(errno));
			free(text);
			return false;
		}
		if (len > before)
			len++; /* the line's end */
	}
	if (!text)
		return false;
	good = emu_setup_parse(text, len, &emu.setup, &error);
	if (!good)
		fprintf(stderr, "emuverbs: line %u: %s; there are no devices\n",
			error.line, error.text);
	free(text);
	return good;
}

static void conds_init(void)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&completed, &attr);
	pthread_condattr_destroy(&attr);
	waiting = 0;
}

static void devs_new(void)
{
	emu.dev = calloc(EMU_DEVICES_MAX, sizeof(*emu.dev));
	if (!emu.dev)
		emu_host_fail("out of memory");
	for (unsigned i = 0; i < emu.setup.devices; i++) {
		emu.dev[i].set = &emu.setup.device[i];
		emu.dev[i].index = i;
		emu.dev[i].down = emu.setup.device[i].down;
		list_init(&emu.dev[i].contexts);
	}
}

static void forked_child(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	static const pthread_cond_t none = PTHREAD_COND_INITIALIZER;

	memcpy(&lock, &fresh, sizeof(lock));
	memcpy(&changed, &none, sizeof(changed));
	atomic_store_explicit(&vain, 0, memory_order_relaxed);
	emu.generation++;
	if (!emu.running)
		return;
	/* Descriptors that stayed open here would keep the parent's peers from hearing
	 * of its end. What was made with them is the parent's. */
	emu_conn_forget();
	emu_late_forget();
	close(emu.listen_fd);
	close(emu.epoll_fd);
	close(emu.wake_fd);
	emu.running = false;
	conds_init();
	/* The old ones stay where what was made with them looks for them. */
	devs_new();
}

static void fork_before(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static bool load(void)
{
	static bool watched;

	if (emu.loaded)
		return emu.setup.devices > 0;
	emu.loaded = true;
	list_init(&emu.conns);
	list_init(&emu.dead);
	if (!watched && pthread_atfork(fork_before, fork_parent, forked_child) != 0)
		emu_host_fail("out of memory");
	watched = true;
	conds_init();
	if (!setup_read()) {
		emu.setup.devices = 0;
		return false;
	}
	emu.random = emu.setup.seed * 2 + 1;
	emu.cookies = (uint32_t)emu_now() ^ (uint32_t)getpid() << 16;
	devs_new();
	return true;
}

bool emu_host_load(void)
{
	bool good;

	emu_lock();
	good = load();
	emu_unlock();
	return good;
}

socklen_t emu_host_name(unsigned slot, struct sockaddr_un *name)
{
	const char *net = getenv("EMUVERBS_NET");
	int n;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		     "emuverbs/%u/%.64s/%u", (unsigned)geteuid(), net ? net : "", slot);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* A number that no other process of this network has. Slot 0 would make queue pairs 0 and
 * 1, which are special. */
static int slot_take(void)
{
	struct sockaddr_un name;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	for (emu.slot = 1; emu.slot < EMU_SLOTS; emu.slot++) {
		socklen_t len = emu_host_name(emu.slot, &name);

		if (bind(fd, (struct sockaddr *)&name, len) == 0 && listen(fd, 4096) == 0)
			return fd;
		if (errno != EADDRINUSE)
			break;
	}
	close(fd);
	return -1;
}

/* What hardware does at its own times. */
static void timers(void)
{
	uint64_t now = emu_now();

	if (now < emu.due)
		return;
	emu.due = UINT64_MAX;
	emu_req_timers(now);
	emu_fault_timers(now);
	emu_late_timers(now);
}

/* Until something comes in or is due; finer than epoll_wait's milliseconds. */
static void sleep_until(uint64_t due)
{
	struct pollfd p = {.fd = emu.epoll_fd, .events = POLLIN};
	uint64_t now = emu_now();
	struct timespec ts;

	if (due <= now)
		return;
	due -= now;
	ts.tv_sec = (time_t)(due / 1000000000u);
	ts.tv_nsec = (long)(due % 1000000000u);
	ppoll(&p, 1, &ts, NULL);
}

static void serve(const struct epoll_event *ev)
{
	eventfd_t n;

	if (ev->data.ptr == &emu.listen_fd)
		emu_conn_accept();
	else if (ev->data.ptr == &emu.wake_fd)
		eventfd_read(emu.wake_fd, &n);
	else if (!((struct emu_conn *)ev->data.ptr)->dead)
		emu_conn_take(ev->data.ptr);
}

void emu_host_busy(void)
{
	atomic_store_explicit(&vain, 0, memory_order_relaxed);
	if (waiting > 0)
		pthread_cond_broadcast(&completed);
}

void emu_host_idle(void)
{
	struct epoll_event ev[EVENTS];
	struct timespec until;
	unsigned before = atomic_fetch_add_explicit(&vain, 1, memory_order_relaxed);
	int n;

	if (before < VAIN) {
		if (pthread_mutex_trylock(&lock) != 0)
			return;
		n = emu.running ? epoll_wait(emu.epoll_fd, ev, EVENTS, 0) : 0;
		for (int i = 0; i < n; i++)
			/* What is to wake the thread is the thread's. */
			if (ev[i].data.ptr != &emu.wake_fd)
				serve(&ev[i]);
		if (emu.running)
			timers();
		if (before == HASTE)
			emu_req_hasten();
		emu_unlock();
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += MOMENT;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	emu_lock();
	waiting++;
	if (atomic_load_explicit(&vain, memory_order_relaxed) >= VAIN)
		pthread_cond_timedwait(&completed, &lock, &until);
	waiting--;
	emu_unlock();
}

/* Hardware does not wait for a processor: of threads that are ready, one that asks for a
 * short time is first. Kernels before 6.12 take no notice. */
static void thread_hurry(void)
{
	struct {
		uint32_t size;
		uint32_t policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime; /* ns */
		uint64_t deadline;
		uint64_t period;
	} attr = {.size = sizeof(attr), .runtime = 100000};

	syscall(SYS_sched_setattr, 0, &attr, 0);
}

static void *thread_main(void *arg)
{
	struct epoll_event ev[EVENTS];
	uint64_t due;

	(void)arg;
	pthread_setname_np(pthread_self(), "emuverbs");
	thread_hurry();
	emu_lock();
	while (1) {
		int n;

		timers();
		due = emu.due;
		emu_unlock();
		if (due != UINT64_MAX)
			sleep_until(due);
		n = epoll_wait(emu.epoll_fd, ev, EVENTS, due == UINT64_MAX ? -1 : 0);
		emu_lock();
		for (int i = 0; i < n; i++)
			serve(&ev[i]);
		emu_conn_bury();
	}
	return NULL;
}

static int thread_start(void)
{
	sigset_t all, old;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&emu.thread, NULL, thread_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0)
		pthread_detach(emu.thread);
	return rc;
}

static bool watch(int fd, void *what)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = what};

	return fd >= 0 && epoll_ctl(emu.epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0;
}

int emu_host_start(void)
{
	int rc = 0;

	if (emu.running)
		return 0;
	if (!load())
		return ENODEV;
	emu.pid = getpid();
	emu.due = UINT64_MAX;
	emu.began = emu_now();
	emu.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	emu.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	emu.listen_fd = slot_take();
	if (emu.epoll_fd < 0 || !watch(emu.wake_fd, &emu.wake_fd) ||
	    !watch(emu.listen_fd, &emu.listen_fd))
		rc = errno ? errno : EIO;
	else
		rc = thread_start();
	emu.running = rc == 0;
	if (rc == 0) {
		emu_fault_start();
		return 0;
	}
	close(emu.epoll_fd);
	close(emu.wake_fd);
	close(emu.listen_fd);
	return rc;
}
