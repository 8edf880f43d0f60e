/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * weft coordinator: the coordinator of a fault-tolerant job as a process (coll/ft). The
 * server has a thread; this one takes signals.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/entry.h"
#include "cli/parse.h"
#include "cli/usage.h"
#include "coll/ft/server.h"

static const char help_text[] =
	"usage: weft coordinator --listen HOST:PORT --state FILE --size N [OPTION...]\n"
	"  --listen HOST:PORT  where members connect; port 0: any that is free\n"
	"  --state FILE        keeps what must survive this process; or\n"
	"                      etcd://HOST:PORT/PREFIX (TLS: etcds://), where several "
	"coordinators keep it\n"
	"                      together: one leads, the others wait to take over\n"
	"  --size N            members that the first epoch waits for, 1 to 4096\n"
	"  --first             the job has never had a coordinator: FILE must not be "
	"there.\n"
	"                      Without it a FILE that is not there is lost, and the "
	"state\n"
	"                      comes from the members\n"
	"  --group-size K      members come and go in groups of K (default 1)\n"
	"  --silence SECONDS   who says nothing for so long is dead (default 3)\n"
	"  --job-file FILE     the job's secret is its first line, 1 to 64 characters;\n"
	"                      without it, what WEFT_JOB says\n"
	"Prints the address, then serves until all members have left (status 0), SIGTERM "
	"or\n"
	"SIGINT (status 0; another may go on), or until it can't (status 1). SIGUSR1 "
	"prints a\n"
	"line of where the job stands. What happens is told on standard error.\n";

struct serving {
	struct ft_server *server;
	pthread_t main;
	atomic_bool ended;
	int rc;
	char why[FT_SERVER_WHY];
};

/* Whoever reads standard error must not stop the job: what he does not take is dropped.
 */
static void note(void *arg, const char *line)
{
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};

	(void)arg;
	if (poll(&p, 1, 0) == 1 && (p.revents & POLLOUT))
		dprintf(STDERR_FILENO, "weft coordinator: %s\n", line);
}

static void *serve(void *arg)
{
	struct serving *s = arg;

	s->rc = ft_server_run(s->server, s->why);
	atomic_store(&s->ended, true);
	pthread_kill(s->main, SIGUSR2);
	return NULL;
}

static void print_status(struct ft_server *server)
{
	struct ft_server_status st;

	ft_server_status(server, &st);
	printf("state=%s term=%" PRIx64 " epoch=%" PRIx64 ".%" PRIu64
	       " members=%u step=%" PRIu64 " connected=%u strangers=%u refused=%" PRIu64
	       " slow=%" PRIu64 " lost=%" PRIu64 "\n",
	       ft_coord_state_name(st.state), st.term, st.epoch.term, st.epoch.seq,
	       st.members, st.commit.step, st.conns_known, st.conns - st.conns_known,
	       st.refused, st.slow, st.lost);
	fflush(stdout);
}

/* Until the server has ended. */
static void take_signals(struct serving *s, const sigset_t *set)
{
	while (!atomic_load(&s->ended)) {
		int signal = 0;

		if (sigwait(set, &signal))
			continue;
		if (signal == SIGUSR1)
			print_status(s->server);
		else if (signal != SIGUSR2)
			ft_server_stop(s->server);
	}
}

/* Every member is a descriptor. */
static void allow_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files))
		return;
	files.rlim_cur = files.rlim_max < 16384 ? files.rlim_max : 16384;
	(void)setrlimit(RLIMIT_NOFILE, &files);
}

/* Opens the server; where another coordinator leads, waits until it doesn't. 1: it is
 * open; 0: a signal ended the wait; negative: said why not. */
static int open_server(const struct ft_server_attr *attr, struct serving *s,
		       const sigset_t *set)
{
	const struct timespec pause = {.tv_sec = 1};
	bool told = false;

	for (;;) {
		int rc = ft_server_open(attr, &s->server, s->why), signal;

		if (rc == 0)
			return 1;
		if (rc != -EAGAIN) {
			fprintf(stderr, "weft coordinator: %s\n", s->why);
			return -1;
		}
		if (!told)
			note(NULL, s->why);
		told = true;
		signal = sigtimedwait(set, NULL, &pause);
		if (signal == SIGUSR1) {
			printf("state=standby\n");
			fflush(stdout);
		} else if (signal == SIGTERM || signal == SIGINT) {
			return 0;
		}
	}
}

static int run(const struct ft_server_attr *attr)
{
	struct serving s = {.main = pthread_self()};
	sigset_t set, mask;
	pthread_t thread;
	int rc;

	entry_signals_keep(&mask);
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	allow_files();
	rc = open_server(attr, &s, &set);
	if (rc < 1)
		return rc < 0;
	printf("%s\n", ft_server_address(s.server));
	fflush(stdout);
	rc = pthread_create(&thread, NULL, serve, &s);
	if (rc) {
		fprintf(stderr, "weft coordinator: no thread: %s\n", strerror(rc));
		ft_server_close(s.server);
		return 1;
	}
	take_signals(&s, &set);
	pthread_join(thread, NULL);
	print_status(s.server);
	ft_server_close(s.server);
	if (s.rc)
		fprintf(stderr, "weft coordinator: %s\n", s.why);
	return s.rc ? 1 : 0;
}

/* ---- the command line -------------------------------------------------------------- */

/* The first line of a file. False: said why not. */
static bool read_secret(const char *path, uint8_t job[FT_JOB_LEN])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[FT_JOB_LEN + 2];
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text));
	const char *end = len > 0 ? memchr(text, '\n', (size_t)len) : NULL;

	if (len < 0)
		fprintf(stderr, "weft coordinator: %s: %s\n", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	if (len < 0)
		return false;
	if (end)
		len = end - text;
	if (len == 0 || len > FT_JOB_LEN) {
		fprintf(stderr,
			"weft coordinator: %s: its first line must be a secret of 1 to "
			"%d characters\n",
			path, FT_JOB_LEN);
		return false;
	}
	memcpy(job, text, (size_t)len);
	return true;
}

static bool find_secret(const char *path, uint8_t job[FT_JOB_LEN])
{
	const char *text = getenv("WEFT_JOB");
	size_t len = text ? strlen(text) : 0;

	if (path)
		return read_secret(path, job);
	if (len == 0 || len > FT_JOB_LEN) {
		fprintf(stderr,
			"weft coordinator: WEFT_JOB has %zu characters: it must be the "
			"job's secret of 1 to %d, or --job-file name a file with it\n",
			len, FT_JOB_LEN);
		return false;
	}
	memcpy(job, text, len);
	return true;
}

/* 0, or the status of wrong usage. */
static int take_option(int c, struct ft_server_attr *attr, const char **secret)
{
	int64_t value;

	switch (c) {
	case 'l':
		attr->listen = optarg;
		break;
	case 's':
		attr->state = optarg;
		break;
	case 'f':
		attr->first = true;
		break;
	case 'j':
		*secret = optarg;
		break;
	case 'n':
	case 'g':
		if (!parse_int(optarg, 1, FT_MEMBERS_MAX, &value))
			return usage_error("coordinator",
					   c == 'n' ? "--size must be 1 to 4096, not"
						    : "--group-size must be 1 to 4096, "
						      "not",
					   optarg);
		*(c == 'n' ? &attr->size : &attr->group_size) = (uint32_t)value;
		break;
	default: /* 't' */
		if (!parse_seconds(optarg, &attr->silence_us))
			return usage_error("coordinator",
					   "--silence must be seconds, not", optarg);
	}
	return 0;
}

int cmd_coordinator(int argc, char **argv)
{
	static const struct option longs[] = {
		{"listen", required_argument, NULL, 'l'},
		{"state", required_argument, NULL, 's'},
		{"size", required_argument, NULL, 'n'},
		{"group-size", required_argument, NULL, 'g'},
		{"first", no_argument, NULL, 'f'},
		{"job-file", required_argument, NULL, 'j'},
		{"silence", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0}};
	struct ft_server_attr attr = {.note = note};
	const char *secret = NULL;
	int c, status;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (c == 'h') {
			fputs(help_text, stdout);
			return 0;
		}
		if (c == '?' || c == ':')
			return usage_option("coordinator", c, argv);
		status = take_option(c, &attr, &secret);
		if (status)
			return status;
	}
	if (optind < argc)
		return usage_error("coordinator", "no argument is wanted:", argv[optind]);
	if (!attr.listen)
		return usage_error("coordinator", "--listen is missing", NULL);
	if (!attr.state)
		return usage_error("coordinator", "--state is missing", NULL);
	if (!attr.size)
		return usage_error("coordinator", "--size is missing", NULL);
	return find_secret(secret, attr.job) ? run(&attr) : 2;
}
