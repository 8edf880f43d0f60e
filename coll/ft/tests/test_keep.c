/* SPDX-License-Identifier: BSD-2-Clause */
/* The coordinator's file: what comes back of it, whatever a crash left. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "coll/ft/keep.h"
#include "util/tap.h"

static const uint8_t job[FT_JOB_LEN] = "secret";
static char folder[200], path[300];

static struct ft_durable sample(struct ft_entry entry[2])
{
	entry[0] = (struct ft_entry){.id = 4, .group = 0, .card_len = 3, .since = {5, 1}};
	memcpy(entry[0].card, "abc", 3);
	entry[1] = (struct ft_entry){.id = 9, .group = 1, .since = {5, 2}};
	return (struct ft_durable){
		.term = 6,
		.valid = 5,
		.sign = 77,
		.active = {.epoch = {5, 2}, .count = 2, .room = 2, .entry = entry},
		.commit = {{5, 1}, 10},
	};
}

static struct ft_keep *opened(const struct ft_durable **kept)
{
	struct ft_keep *keep = NULL;
	char why[FT_KEEP_WHY] = "";

	if (ft_keep_open(path, job, &keep, kept, why))
		tap_diag("%s", why);
	return keep;
}

static bool refused(const char *text, int want)
{
	const struct ft_durable *kept;
	char why[FT_KEEP_WHY] = "";
	struct ft_keep *keep = NULL;
	int rc = ft_keep_open(path, job, &keep, &kept, why);

	if (rc != want || !strstr(why, text) || !strstr(why, path))
		tap_diag("got %d: %s", rc, why);
	if (!rc)
		ft_keep_close(keep);
	return rc == want && strstr(why, text) && strstr(why, path);
}

/* Whether the file says this. */
static bool says(const struct ft_durable *d)
{
	const struct ft_durable *kept = NULL;
	struct ft_keep *keep = opened(&kept);
	bool same = keep && kept && kept->fresh == d->fresh && kept->term == d->term &&
		    kept->valid == d->valid && kept->sign == d->sign &&
		    ft_commit_same(kept->commit, d->commit) &&
		    ft_epoch_same(kept->active.epoch, d->active.epoch) &&
		    kept->active.count == d->active.count;

	for (uint32_t i = 0; same && i < d->active.count; i++)
		same = kept->active.entry[i].id == d->active.entry[i].id &&
		       kept->active.entry[i].group == d->active.entry[i].group &&
		       memcmp(kept->active.entry[i].card, d->active.entry[i].card,
			      FT_CARD_MAX) == 0;
	ft_keep_close(keep);
	return same;
}

static void life(void)
{
	struct ft_durable young = {.fresh = true, .term = 3};
	const struct ft_durable *kept = &young;
	struct ft_entry entry[2];
	struct ft_durable d = sample(entry);
	struct ft_keep *keep = opened(&kept);
	bool good;

	tap_ok(keep && !kept, "a new file has nothing");
	tap_ok(ft_keep_save(keep, FT_SAVE_TERM, &young), "a term is kept");
	tap_ok(refused("a coordinator that runs", -EBUSY),
	       "by one coordinator at a time");
	ft_keep_close(keep);
	tap_ok(says(&young), "and comes back, with no epoch yet");

	keep = opened(&kept);
	good = ft_keep_save(keep, FT_SAVE_EPOCH, &d);
	for (int i = 0; i < 5; i++) {
		d.commit = (struct ft_commit){d.active.epoch, d.commit.step + 1};
		good &= ft_keep_save(keep, FT_SAVE_COMMIT, &d);
	}
	ft_keep_close(keep);
	tap_ok(good && says(&d), "so do an epoch and the steps that counted in it");
	tap_ok(says(&d), "each time");

	keep = opened(&kept);
	for (int i = 0; i < 300; i++) {
		d.commit.step++;
		good &= ft_keep_save(keep, FT_SAVE_COMMIT, &d);
	}
	ft_keep_close(keep);
	tap_ok(good && says(&d), "more of them than records");
}

/* The file's first `len` bytes, then one that is changed. */
static void cut(const uint8_t *bytes, size_t len, size_t at, uint8_t flip)
{
	FILE *out = fopen(path, "wb");

	if (!out)
		tap_bail("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < len; i++)
		fputc(bytes[i] ^ (i == at ? flip : 0), out);
	fclose(out);
}

/* A crash may cut the last record anywhere, or leave garbage in it. */
static void crashes(void)
{
	struct ft_entry entry[2];
	struct ft_durable d = sample(entry), before;
	const struct ft_durable *kept;
	struct ft_keep *keep;
	uint8_t bytes[2048];
	size_t len, head;
	bool good = true;
	FILE *in;

	unlink(path);
	keep = opened(&kept);
	ft_keep_save(keep, FT_SAVE_EPOCH, &d);
	d.commit = (struct ft_commit){d.active.epoch, 11};
	ft_keep_save(keep, FT_SAVE_COMMIT, &d);
	before = d;
	d.commit.step = 12;
	ft_keep_save(keep, FT_SAVE_COMMIT, &d);
	ft_keep_close(keep);
	in = fopen(path, "rb");
	len = in ? fread(bytes, 1, sizeof(bytes), in) : 0;
	if (in)
		fclose(in);
	head = len - 32;
	for (size_t i = len - 16; i < len; i++) {
		cut(bytes, i, len, 0);
		good &= says(&before);
		cut(bytes, len, i, 0x40);
		good &= says(&before);
	}
	tap_ok(good, "a last record that is cut or garbled anywhere did not count");
	cut(bytes, len - 3, len, 0);
	keep = opened(&kept);
	good = ft_keep_save(keep, FT_SAVE_COMMIT, &d);
	ft_keep_close(keep);
	tap_ok(good && says(&d), "and is written again");
	for (size_t i = 0; i < head; i++) {
		cut(bytes, len, i, 0x01);
		good &= refused("", -EINVAL);
		cut(bytes, i, len, 0);
		good &= refused("", -EINVAL);
	}
	tap_ok(good, "a snapshot that is cut or garbled anywhere is refused");
	cut(bytes, len, FT_HDR_LEN - 1, 1);
	tap_ok(refused("of this job", -EINVAL), "one of another job is named so");
}

static void places(void)
{
	const struct ft_durable *kept;
	struct ft_keep *keep = NULL;
	struct ft_durable young = {.fresh = true, .term = 3};
	char why[FT_KEEP_WHY], kind[sizeof(path) + 8];

	tap_ok(ft_keep_open("", job, &keep, &kept, why) == -EINVAL, "no name");
	snprintf(path, sizeof(path), "%s/none/state", folder);
	tap_ok(refused("No such file", -ENOENT), "no folder");
	snprintf(path, sizeof(path), "%s/state", folder);
	unlink(path);
	keep = opened(&kept);
	snprintf(kind, sizeof(kind), "%s.new", path);
	mkdir(kind, 0700);
	tap_ok(!ft_keep_save(keep, FT_SAVE_TERM, &young) &&
		       strstr(ft_keep_why(keep), ".new"),
	       "what can't be written is said");
	rmdir(kind);
	tap_ok(!ft_keep_save(keep, FT_SAVE_TERM, &young),
	       "and nothing is kept after that");
	ft_keep_close(keep);
}

int main(void)
{
	char command[300];

	snprintf(folder, sizeof(folder), "%s/weft-keep-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(folder))
		tap_bail("%s: %s", folder, strerror(errno));
	snprintf(path, sizeof(path), "%s/state", folder);
	life();
	crashes();
	places();
	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		tap_diag("%s is left", folder);
	return tap_done();
}
