/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See keep.h. The file: a snapshot, then a record for each step that counted since.
 *
 *   snapshot   head, the members of the last epoch, each as in ft_wire, checksum
 *   record     step, checksum; the epoch is the snapshot's
 *
 * All big-endian. A snapshot is written to a file beside it, which then takes its name,
 * so the file has always one that is whole; only its last record can be cut short.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/ft/keep.h"
#include "coll/ft/snapshot.h"
#include "util/be.h"
#include "util/fd.h"

enum {
	KEEP_PATH_MAX = 1024,
	RECORD_LEN = 16,
	RECORDS_MAX = 256, /* then a snapshot is due */
	FILE_MAX = FT_MSG_MAX + RECORDS_MAX * RECORD_LEN + 64,
};

struct record {
	struct be64 step;
	struct be64 check;
};

struct ft_keep {
	uint8_t job[FT_JOB_LEN];
	char path[KEEP_PATH_MAX], fresh[KEEP_PATH_MAX + 8], lock[KEEP_PATH_MAX + 8];
	char dir[KEEP_PATH_MAX];
	int fd;	     /* of the file, for records; -1: there is none yet */
	int lock_fd; /* of a file beside it, which is never replaced */
	uint32_t records;
	bool broken;
	struct ft_durable kept;
	char why[FT_KEEP_WHY];
};

static int failed(struct ft_keep *k, const char *what, const char *path)
{
	const int err = errno;

	snprintf(k->why, sizeof(k->why), "%s %.300s: %s", what, path, strerror(err));
	k->broken = true;
	return -err;
}

/* The name of a file is durable when its folder is. */
static bool sync_folder(const struct ft_keep *k)
{
	int fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool good = fd >= 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return good;
}

static bool write_snapshot(int fd, const struct ft_keep *k, const struct ft_durable *d)
{
	size_t len;
	uint8_t *buf = ft_snapshot_put(d, k->job, &len);
	bool good = buf && fd_write_all(fd, buf, len) == 0 && fsync(fd) == 0;

	free(buf);
	return good;
}

static bool save_snapshot(struct ft_keep *k, const struct ft_durable *d)
{
	int fd = open(k->fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		      0600);

	if (fd < 0) {
		failed(k, "can't write", k->fresh);
		return false;
	}
	if (!write_snapshot(fd, k, d) || rename(k->fresh, k->path)) {
		failed(k, "can't write", k->fresh);
		close(fd);
		unlink(k->fresh);
		return false;
	}
	if (k->fd >= 0)
		close(k->fd);
	k->fd = fd;
	k->records = 0;
	if (!sync_folder(k)) {
		failed(k, "can't make durable", k->dir);
		return false;
	}
	return true;
}

static bool save_record(struct ft_keep *k, const struct ft_durable *d)
{
	struct record r = {.step = be64_of(d->commit.step)};

	r.check = be64_of(ft_snapshot_check(&r.step, sizeof(r.step),
					    d->active.epoch.term ^ d->active.epoch.seq));
	if (fd_write_all(k->fd, &r, sizeof(r)) || fdatasync(k->fd)) {
		failed(k, "can't write", k->path);
		return false;
	}
	k->records++;
	return true;
}

bool ft_keep_save(struct ft_keep *k, enum ft_saved what, const struct ft_durable *d)
{
	if (k->broken)
		return false;
	if (what != FT_SAVE_COMMIT || k->fd < 0 || k->records == RECORDS_MAX)
		return save_snapshot(k, d);
	return save_record(k, d);
}

const char *ft_keep_why(const struct ft_keep *k)
{
	return k->why;
}

/* ---- reading ------------------------------------------------------------------------
 */

/* The steps that counted since the snapshot, as far as records are whole; returns how
 * many bytes that is. */
static size_t read_records(struct ft_durable *d, const uint8_t *at, size_t len)
{
	size_t used = 0;

	for (; len - used >= RECORD_LEN; used += RECORD_LEN) {
		struct record r;

		memcpy(&r, at + used, sizeof(r));
		if (be64_get(r.check) != ft_snapshot_check(&r.step, sizeof(r.step),
							   d->active.epoch.term ^
								   d->active.epoch.seq) ||
		    be64_get(r.step) != d->commit.step + 1)
			break;
		d->commit.step++;
		d->commit.epoch = d->active.epoch;
	}
	return used;
}

static const char *parse(struct ft_keep *k, const uint8_t *buf, size_t len, size_t *whole)
{
	const char *fault = ft_snapshot_get(buf, len, k->job, &k->kept, whole);
	size_t head = *whole;

	if (fault)
		return fault;
	*whole += read_records(&k->kept, buf + head, len - head);
	k->records = (uint32_t)((*whole - head) / RECORD_LEN);
	return NULL;
}

/* Reads it, and cuts off what a crash left at its end. */
static int read_file(struct ft_keep *k)
{
	uint8_t *buf = malloc(FILE_MAX);
	const char *fault;
	size_t len = 0, whole = 0;
	ssize_t n = 1;

	if (!buf) {
		errno = ENOMEM;
		return failed(k, "can't read", k->path);
	}
	while (n > 0 && len < FILE_MAX) {
		n = read(k->fd, buf + len, FILE_MAX - len);
		len += n > 0 ? (size_t)n : 0;
	}
	fault = n < 0 ? NULL : parse(k, buf, len, &whole);
	free(buf);
	if (n < 0)
		return failed(k, "can't read", k->path);
	if (fault) {
		snprintf(k->why, sizeof(k->why),
			 "%.300s %s; name another file, or remove it to have the state "
			 "rebuilt from the ranks",
			 k->path, fault);
		return -EINVAL;
	}
	if (whole < len && (ftruncate(k->fd, (off_t)whole) || fsync(k->fd)))
		return failed(k, "can't write", k->path);
	if (lseek(k->fd, (off_t)whole, SEEK_SET) < 0)
		return failed(k, "can't read", k->path);
	return 0;
}

static int take_lock(struct ft_keep *k)
{
	k->lock_fd = open(k->lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (k->lock_fd < 0)
		return failed(k,
			      "name a state file in a folder that can be written to: "
			      "can't make",
			      k->lock);
	if (flock(k->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno != EWOULDBLOCK)
		return failed(k, "can't lock", k->lock);
	snprintf(k->why, sizeof(k->why),
		 "%.300s belongs to a coordinator that runs: end it first", k->path);
	return -EBUSY;
}

static int open_file(struct ft_keep *k)
{
	int rc = take_lock(k);

	if (rc)
		return rc;
	k->fd = open(k->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (k->fd >= 0)
		return read_file(k);
	return errno == ENOENT ? 0 : failed(k, "can't open", k->path);
}

static void name_files(struct ft_keep *k, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(k->path, sizeof(k->path), "%s", path);
	snprintf(k->fresh, sizeof(k->fresh), "%s.new", path);
	snprintf(k->lock, sizeof(k->lock), "%s.lock", path);
	if (!slash)
		snprintf(k->dir, sizeof(k->dir), ".");
	else
		snprintf(k->dir, sizeof(k->dir), "%.*s",
			 slash == path ? 1 : (int)(slash - path), path);
}

int ft_keep_open(const char *path, const uint8_t *job, struct ft_keep **keep,
		 const struct ft_durable **kept, char why[FT_KEEP_WHY])
{
	struct ft_keep *k;
	int rc;

	if (!*path || strlen(path) >= KEEP_PATH_MAX) {
		snprintf(why, FT_KEEP_WHY, "the file's name is %s",
			 *path ? "too long" : "empty");
		return -EINVAL;
	}
	k = calloc(1, sizeof(*k));
	if (!k) {
		snprintf(why, FT_KEEP_WHY, "no memory");
		return -ENOMEM;
	}
	memcpy(k->job, job, sizeof(k->job));
	k->fd = k->lock_fd = -1;
	name_files(k, path);
	rc = open_file(k);
	if (rc) {
		snprintf(why, FT_KEEP_WHY, "%s", k->why);
		ft_keep_close(k);
		return rc;
	}
	*keep = k;
	*kept = k->fd >= 0 ? &k->kept : NULL;
	return 0;
}

void ft_keep_close(struct ft_keep *k)
{
	if (!k)
		return;
	if (k->fd >= 0)
		close(k->fd);
	if (k->lock_fd >= 0)
		close(k->lock_fd);
	ft_roster_fini(&k->kept.active);
	free(k);
}
