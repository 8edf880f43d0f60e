/* SPDX-License-Identifier: BSD-2-Clause */
/* See take.h. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/api/error.h"
#include "coll/trace/dump.h"
#include "coll/trace/take.h"

/* The process goes on meanwhile: an entry that is being written looks damaged. */
enum { TRIES = 5 };

/* Whether this descriptor of a process is a recorder's memory. */
static bool is_memory(const char *link)
{
	static const char want[] = "/memfd:" TRACE_MEMORY;
	char to[128];
	const ssize_t n = readlink(link, to, sizeof(to) - 1);

	if (n < 0)
		return false;
	to[n] = '\0';
	return strncmp(to, want, sizeof(want) - 1) == 0;
}

/* Negative errno; -EPROTO: it is not as long as ours. */
static int read_image(const char *link, struct trace_image *image)
{
	const int fd = open(link, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = 0;
	size_t at = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_size != (off_t)sizeof(*image))
		n = -1;
	while (n >= 0 && at < sizeof(*image)) {
		n = pread(fd, (char *)image + at, sizeof(*image) - at, (off_t)at);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(fd);
	return at == sizeof(*image) ? 0 : -EPROTO;
}

/* Its own, not its parent's, which a child that was forked has too. */
static bool is_own(const struct trace_image *image, pid_t pid)
{
	return memcmp(image->head.magic, TRACE_MAGIC, sizeof(image->head.magic)) == 0 &&
	       image->head.pid == pid;
}

static enum weft_result write_image(const struct trace_image *image, const char *path)
{
	const bool counter = ticks_have_counter();
	const struct dump_now now = {
		.reason = TRACE_TAKEN,
		.ticks = ticks_now(counter),
		.mono = ticks_clock_ns(CLOCK_MONOTONIC),
		.real = ticks_clock_ns(CLOCK_REALTIME),
	};
	struct trace_dump dump;
	enum weft_result result;
	const int rc = dump_write(image, &now, path);

	if (rc)
		return error_set(WEFT_ERR_ARG, "%.300s: %s", path, strerror(-rc));
	result = trace_load_tables(path, &dump);
	if (result == WEFT_SUCCESS)
		trace_free(&dump);
	else
		unlink(path);
	return result;
}

/* One descriptor, which is a recorder's memory. *own: of this process. */
static enum weft_result take_one(pid_t pid, const char *link, int number,
				 struct trace_image *image, take_use *use, void *arg,
				 bool *own)
{
	enum weft_result result = WEFT_SUCCESS;

	for (int i = 0; i < TRIES; i++) {
		const int rc = read_image(link, image);

		if (rc)
			return error_set(WEFT_ERR_ARG, "process %ld: its recorder: %s",
					 (long)pid,
					 rc == -EPROTO ? "it is of another version of "
							 "Weft: use that one's command"
						       : strerror(-rc));
		*own = is_own(image, pid);
		if (!*own)
			return WEFT_SUCCESS;
		result = use(arg, image, number);
		if (result == WEFT_SUCCESS)
			break;
	}
	return result;
}

/* Why the descriptors of a process can't be looked at. */
static enum weft_result refused(pid_t pid, int why)
{
	return error_set(WEFT_ERR_ARG, "process %ld: %s%s", (long)pid, strerror(why),
			 why == EACCES || why == EPERM
				 ? ": it is another user's, or may not be looked at; ask "
				   "as its user, or as root"
				 : "");
}

enum weft_result take_images(pid_t pid, take_use *use, void *arg)
{
	struct trace_image *image = malloc(sizeof(*image));
	enum weft_result result = WEFT_SUCCESS;
	struct dirent *entry;
	char link[300];
	int count = 0;
	DIR *dir;

	snprintf(link, sizeof(link), "/proc/%ld/fd", (long)pid);
	dir = image ? opendir(link) : NULL;
	if (!dir) {
		const int why = errno;

		if (!image)
			return error_set(WEFT_ERR_NOMEM, "no memory for a recorder");
		free(image);
		return refused(pid, why);
	}
	while (result == WEFT_SUCCESS && (entry = readdir(dir))) {
		bool own = false;

		snprintf(link, sizeof(link), "/proc/%ld/fd/%.200s", (long)pid,
			 entry->d_name);
		if (!is_memory(link))
			continue;
		result = take_one(pid, link, count, image, use, arg, &own);
		count += result == WEFT_SUCCESS && own;
	}
	closedir(dir);
	free(image);
	if (result == WEFT_SUCCESS && !count)
		return error_set(WEFT_ERR_ARG,
				 "process %ld: it has no flight recorder: it has opened "
				 "no context, or closed it, or its Weft is of another "
				 "version",
				 (long)pid);
	return result;
}

/* ---- as dumps ---------------------------------------------------------------------- */

struct writer {
	pid_t pid;
	const char *folder;
	void (*found)(void *arg, const char *path);
	void *arg;
};

static enum weft_result write_one(void *arg, const struct trace_image *image, int number)
{
	const struct writer *w = arg;
	char path[TAKE_PATH_MAX];
	const int n = snprintf(path, sizeof(path), "%s/rank-%d.%ld.%d.trace", w->folder,
			       image->head.rank, (long)w->pid, number);
	enum weft_result result;

	if (n < 0 || n >= TAKE_PATH_MAX)
		return error_set(WEFT_ERR_ARG, "%.100s...: it is too long", w->folder);
	result = write_image(image, path);
	if (result == WEFT_SUCCESS)
		w->found(w->arg, path);
	return result;
}

enum weft_result take_process(pid_t pid, const char *folder,
			      void (*found)(void *arg, const char *path), void *arg)
{
	struct writer w = {.pid = pid, .folder = folder, .found = found, .arg = arg};

	return take_images(pid, write_one, &w);
}

/* ---- processes --------------------------------------------------------------------- */

/* The letter and the parent; 0: it is not there. */
static char read_stat(pid_t pid, long *parent)
{
	char name[64], line[512];
	char state = 0;
	const char *at;
	FILE *in;

	snprintf(name, sizeof(name), "/proc/%ld/stat", (long)pid);
	in = fopen(name, "re");
	if (!in)
		return 0;
	if (fgets(line, sizeof(line), in)) {
		/* The name before it may hold anything. */
		at = strrchr(line, ')');
		if (at && at[1] == ' ' && at[2]) {
			state = at[2];
			*parent = strtol(at + 3, NULL, 10);
		}
	}
	fclose(in);
	return state;
}

char take_state(pid_t pid)
{
	long parent;

	return read_stat(pid, &parent);
}

static bool descends(long pid, long from)
{
	/* As deep as a tree of processes gets, and no loop while it changes. */
	for (int i = 0; i < 64 && pid > 1; i++) {
		long parent = 0;

		if (!read_stat((pid_t)pid, &parent))
			return false;
		if (parent == from)
			return true;
		pid = parent;
	}
	return false;
}

enum weft_result take_children(pid_t pid, void (*each)(void *arg, pid_t child), void *arg)
{
	DIR *dir = take_state(pid) ? opendir("/proc") : NULL;
	struct dirent *entry;

	if (!dir)
		return error_set(WEFT_ERR_ARG, "process %ld is not there", (long)pid);
	while ((entry = readdir(dir))) {
		const long child = strtol(entry->d_name, NULL, 10);

		if (isdigit((unsigned char)entry->d_name[0]) && child != pid &&
		    descends(child, pid))
			each(arg, (pid_t)child);
	}
	closedir(dir);
	return WEFT_SUCCESS;
}

void take_everybody(void (*each)(void *arg, pid_t pid), void *arg)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		char name[300];
		struct stat st;

		snprintf(name, sizeof(name), "/proc/%.200s", entry->d_name);
		if (isdigit((unsigned char)entry->d_name[0]) && !stat(name, &st) &&
		    st.st_uid == geteuid())
			each(arg, (pid_t)strtol(entry->d_name, NULL, 10));
	}
	closedir(dir);
}
