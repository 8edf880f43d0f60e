/* SPDX-License-Identifier: BSD-2-Clause */
/* See space.h. By iproute2. */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabtests/chaos/space.h"

/* What ip says goes to stderr. */
__attribute__((format(printf, 1, 2))) static bool ip(const char *fmt, ...)
{
	char command[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	return system(command) == 0;
}

/* Keeps a namespace: says that it is there, waits for its link, and stays. */
static void hold(int seat, int there, int link)
{
	char byte = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWNET) || write(there, "n", 1) != 1 ||
	    read(link, &byte, 1) != 1)
		_exit(1);
	if (!ip("ip link set lo up && ip addr add 10.77.0.%d/24 dev eth0 && "
		"ip link set eth0 up",
		seat + 1) ||
	    write(there, "u", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static bool seat_open(struct space *s, int seat)
{
	int there[2], link[2];
	char byte = 0;
	bool good;
	pid_t pid;

	if (pipe2(there, O_CLOEXEC))
		return false;
	if (pipe2(link, O_CLOEXEC)) {
		close(there[0]);
		close(there[1]);
		return false;
	}
	pid = fork();
	if (pid == 0) {
		close(there[0]);
		close(link[1]);
		hold(seat, there[1], link[0]);
	}
	close(there[1]);
	close(link[0]);
	s->holder[seat] = pid > 0 ? pid : 0;
	good = pid > 0 && read(there[0], &byte, 1) == 1 &&
	       ip("ip link add l%d type veth peer name eth0 netns %d && "
		  "ip link set l%d master hub && ip link set l%d up",
		  seat, (int)pid, seat, seat) &&
	       write(link[1], "l", 1) == 1 && read(there[0], &byte, 1) == 1;
	close(there[0]);
	close(link[1]);
	return good;
}

bool space_open(struct space *s, int seats)
{
	*s = (struct space){.seats = seats};
	if (!ip("ip link set lo up && ip link add hub type bridge && "
		"ip addr add " SPACE_HUB "/24 dev hub && ip link set hub up"))
		return false;
	for (int i = 0; i < seats; i++) {
		if (!seat_open(s, i)) {
			fprintf(stderr, "chaos: no namespace with a link\n");
			space_close(s);
			return false;
		}
	}
	return true;
}

void space_close(struct space *s)
{
	for (int i = 0; i < s->seats; i++) {
		if (s->holder[i] <= 0)
			continue;
		kill(s->holder[i], SIGKILL);
		waitpid(s->holder[i], NULL, 0);
		s->holder[i] = 0;
	}
}

bool space_enter(const struct space *s, int seat)
{
	char path[64];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)s->holder[seat]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	good = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
	if (fd >= 0)
		close(fd);
	return good;
}

bool space_cut(const struct space *s, int seat)
{
	return seat < s->seats && ip("ip link set l%d nomaster", seat);
}

bool space_heal(const struct space *s, int seat)
{
	return seat < s->seats && ip("ip link set l%d master hub", seat);
}

bool space_part(const struct space *s, int a, int b, bool apart)
{
	const char *how = apart ? "on" : "off";

	return a < s->seats && b < s->seats &&
	       ip("ip link set l%d type bridge_slave isolated %s && "
		  "ip link set l%d type bridge_slave isolated %s",
		  a, how, b, how);
}
