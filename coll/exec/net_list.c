/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of the providers that there are, for people whose choice is not among them.
 * libfabric reads FI_PROVIDER once and never shows what it excludes. So where it is set,
 * a child loads libfabric a second time, without the variable, and writes the names into
 * a pipe. A child, because the copy stays in the process that loads it, and because a
 * provider that hangs while it is asked must not hang us. Only on the way to an error.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "coll/exec/exec.h"
#include "coll/exec/net.h"

/* More than libfabric takes to load all its providers on a busy machine. */
#define LIST_DEADLINE_US INT64_C(20000000)

/* The functions of one copy of libfabric. */
struct list_fabric {
	int (*getinfo)(uint32_t version, const char *node, const char *service,
		       uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
};

static const char *list_name(const struct fi_info *info)
{
	return info->fabric_attr && info->fabric_attr->prov_name
		       ? info->fabric_attr->prov_name
		       : "?";
}

/* Each name once, in libfabric's order. */
static void list_print(const struct fi_info *list, char *text, size_t len)
{
	size_t used = 0;

	for (const struct fi_info *i = list; i; i = i->next) {
		const struct fi_info *seen = list;
		int n;

		while (seen != i && strcmp(list_name(seen), list_name(i)) != 0)
			seen = seen->next;
		if (seen != i)
			continue;
		n = snprintf(text + used, len - used, "%s%s", used ? ", " : "",
			     list_name(i));
		if (n < 0 || (size_t)n >= len - used)
			break;
		used += (size_t)n;
	}
}

static void list_ask(const struct list_fabric *fabric, char *text, size_t len)
{
	struct fi_info *list = NULL, *hints = fabric->dupinfo(NULL);

	text[0] = '\0';
	if (!hints)
		return;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED;
	if (fabric->getinfo(NET_API_VERSION, NULL, NULL, 0, hints, &list) == 0) {
		list_print(list, text, len);
		fabric->freeinfo(list);
	}
	fabric->freeinfo(hints);
	if (!text[0])
		snprintf(text, len, "none");
}

/* In the child: asks a copy of libfabric whose environment has no FI_PROVIDER. The copy
 * has a C library and an environment of its own. */
static void list_child(int out)
{
	struct list_fabric fabric;
	int (*forget)(const char *name);
	Dl_info self;
	void *copy;
	char text[512];

	if (!dladdr((void *)(uintptr_t)fi_getinfo, &self))
		return;
	copy = dlmopen(LM_ID_NEWLM, self.dli_fname, RTLD_NOW | RTLD_LOCAL);
	if (!copy)
		return;
	*(void **)&forget = dlsym(copy, "unsetenv");
	*(void **)&fabric.getinfo = dlsym(copy, "fi_getinfo");
	*(void **)&fabric.freeinfo = dlsym(copy, "fi_freeinfo");
	*(void **)&fabric.dupinfo = dlsym(copy, "fi_dupinfo");
	if (!forget || !fabric.getinfo || !fabric.freeinfo || !fabric.dupinfo)
		return;
	forget("FI_PROVIDER");
	list_ask(&fabric, text, sizeof(text));
	if (write(out, text, strlen(text)) < 0)
		return;
}

/* All that the child writes until it ends, or nothing. */
static size_t list_read(int in, char *text, size_t len, int64_t until)
{
	size_t used = 0;

	while (used + 1 < len) {
		struct pollfd fd = {.fd = in, .events = POLLIN};
		const int64_t left = until - exec_now();
		ssize_t got;

		if (left <= 0 ||
		    (poll(&fd, 1, (int)(left / 1000) + 1) < 0 && errno != EINTR))
			break;
		if (!fd.revents)
			continue;
		got = read(in, text + used, len - used - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		used += (size_t)got;
	}
	text[used] = '\0';
	return used;
}

/* False when the child could not say. */
static bool list_hidden(char *text, size_t len)
{
	int end[2];
	size_t got;
	pid_t pid;

	if (pipe2(end, O_CLOEXEC))
		return false;
	pid = fork();
	if (pid == 0) {
		list_child(end[1]);
		_exit(0);
	}
	close(end[1]);
	got = pid > 0 ? list_read(end[0], text, len, exec_now() + LIST_DEADLINE_US) : 0;
	close(end[0]);
	if (pid > 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return got > 0;
}

void net_provider_list(char *text, size_t len)
{
	const struct list_fabric own = {fi_getinfo, fi_freeinfo, fi_dupinfo};

	list_ask(&own, text, len);
}

void net_provider_list_all(char *text, size_t len)
{
	const char *filter = getenv("FI_PROVIDER");

	if (!filter || !*filter) {
		net_provider_list(text, len);
	} else if (!list_hidden(text, len)) {
		snprintf(text, len, "unknown, since FI_PROVIDER=%.64s hides them",
			 filter);
	}
}
