/* SPDX-License-Identifier: BSD-2-Clause */
/* See trace_src.h. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/trace_src.h"
#include "coll/trace/take.h"

static void say(struct trace_src *src, const char *what, const char *why)
{
	fprintf(stderr, "weft %s: %s%s%s\n", src->who, what, *what ? ": " : "", why);
	src->bad = true;
}

void trace_src_begin(struct trace_src *src, const char *who, const char *out)
{
	memset(src, 0, sizeof(*src));
	src->who = who;
	src->out = out;
}

void trace_src_end(struct trace_src *src)
{
	for (int64_t i = 0; i < src->count; i++) {
		if (*src->folder &&
		    strncmp(src->path[i], src->folder, strlen(src->folder)) == 0)
			unlink(src->path[i]);
		free(src->path[i]);
	}
	if (*src->folder)
		rmdir(src->folder);
	free(src->path);
	free(src->state);
	memset(src, 0, sizeof(*src));
}

static void put(struct trace_src *src, const char *path, char state)
{
	if (src->count == src->max) {
		const int64_t max = src->max ? 2 * src->max : 64;
		char **paths = realloc(src->path, (size_t)max * sizeof(*paths));
		char *states;

		if (paths)
			src->path = paths;
		states = paths ? realloc(src->state, (size_t)max) : NULL;
		if (!states) {
			say(src, path, "no memory for its name");
			return;
		}
		src->state = states;
		src->max = max;
	}
	src->path[src->count] = strdup(path);
	if (!src->path[src->count]) {
		say(src, path, "no memory for its name");
		return;
	}
	src->state[src->count++] = state;
}

/* ---- processes --------------------------------------------------------------------- */

static void found(void *arg, const char *path)
{
	struct trace_src *src = arg;

	put(src, path, src->now);
}

/* Where dumps go; NULL: it was said. */
static const char *place(struct trace_src *src)
{
	const char *base = getenv("TMPDIR");

	if (src->out)
		return src->out;
	if (*src->folder)
		return src->folder;
	if (!base || !*base || strlen(base) > 40)
		base = "/tmp";
	snprintf(src->folder, sizeof(src->folder), "%s/weft-trace-XXXXXX", base);
	if (mkdtemp(src->folder))
		return src->folder;
	say(src, src->folder, strerror(errno));
	*src->folder = '\0';
	return NULL;
}

static bool take(struct trace_src *src, pid_t pid)
{
	const char *folder = place(src);

	src->now = take_state(pid);
	return folder && take_process(pid, folder, found, src) == WEFT_SUCCESS;
}

/* 0: it is no number of a process. */
static pid_t pid_of(const char *word, const char **end)
{
	char *rest;
	long pid;

	errno = 0;
	pid = *word >= '0' && *word <= '9' ? strtol(word, &rest, 10) : 0;
	if (errno || pid < 1 || pid > INT32_MAX)
		return 0;
	*end = rest;
	return (pid_t)pid;
}

void trace_src_pids(struct trace_src *src, const char *list)
{
	const char *end = "";

	for (const char *at = list;; at = end + 1) {
		const pid_t pid = pid_of(at, &end);

		if (!pid || (*end && *end != ',')) {
			say(src, list, "numbers of processes are wanted, with commas");
			return;
		}
		if (!take(src, pid))
			say(src, "", weft_error_detail());
		if (!*end)
			return;
	}
}

/* Most of them, a shell among them, have none. */
static void take_child(void *arg, pid_t child)
{
	take(arg, child);
}

void trace_src_job(struct trace_src *src, const char *word)
{
	const char *end = "";
	const pid_t pid = pid_of(word, &end);

	if (!pid || *end)
		say(src, word, "the number of a process is wanted");
	else if (take_children(pid, take_child, src) != WEFT_SUCCESS)
		say(src, "", weft_error_detail());
	else if (!src->count)
		say(src, word, "no process below it has a flight recorder");
}

void trace_src_everybody(struct trace_src *src)
{
	take_everybody(take_child, src);
}

/* ---- files ------------------------------------------------------------------------- */

static bool is_dump(const char *name)
{
	const size_t len = strlen(name);

	return len > 6 && strcmp(name + len - 6, ".trace") == 0;
}

static void add_folder(struct trace_src *src, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int64_t before = src->count;

	if (!dir) {
		say(src, folder, strerror(errno));
		return;
	}
	while ((entry = readdir(dir))) {
		char path[TAKE_PATH_MAX + 256];

		if (!is_dump(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%.511s/%s", folder, entry->d_name);
		put(src, path, 0);
	}
	closedir(dir);
	if (src->count == before)
		say(src, folder, "no file in it ends with .trace");
}

void trace_src_add(struct trace_src *src, const char *word)
{
	const char *end = "";
	struct stat st;
	pid_t pid;

	if (stat(word, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			add_folder(src, word);
		else
			put(src, word, 0);
		return;
	}
	pid = pid_of(word, &end);
	if (!pid || *end)
		put(src, word, 0); /* whoever reads it says what is wrong */
	else if (!take(src, pid))
		say(src, "", weft_error_detail());
}
