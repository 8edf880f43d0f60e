/* SPDX-License-Identifier: BSD-2-Clause */
/* See etcd.h. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/ft/dial.h"
#include "coll/ft/etcd.h"
#include "coll/ft/http.h"
#include "coll/ft/snapshot.h"

enum {
	PREFIX_MAX = 200,
	ASK_US = 3000000,   /* for an answer, when a coordinator starts */
	RENEW_US = 1500000, /* for one to renewing the lease, and until the next */
	SAVE_US = 10000000, /* etcd may choose a leader of its own meanwhile */
};

struct ft_etcd {
	char host[FT_DIAL_HOST], port[FT_DIAL_PORT], prefix[PREFIX_MAX];
	struct ft_tls *tls; /* NULL: in clear */
	uint8_t job[FT_JOB_LEN];
	char lease[24]; /* its number; empty: none */
	struct ft_durable kept;
	bool broken;
	char why[FT_KEEP_WHY];
	/* The thread that renews the lease. */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool running, ending;
	atomic_bool lost;
};

__attribute__((format(printf, 2, 3))) static char *text_of(char **also, const char *fmt,
							   ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	if (also)
		*also = text;
	return text;
}

/* Of PREFIX/name, as etcd wants keys; allocated, or NULL. */
static char *key_of(const struct ft_etcd *e, const char *name)
{
	char key[PREFIX_MAX + 20];

	snprintf(key, sizeof(key), "%s/%s", e->prefix, name);
	return ft_base64_put(key, strlen(key));
}

static struct ft_http_place place_of(const struct ft_etcd *e)
{
	return (struct ft_http_place){e->host, e->port, e->tls};
}

/* Frees the body. NULL: why in e->why. */
static char *post(struct ft_etcd *e, const char *path, char *body, int64_t us)
{
	char why[FT_HTTP_WHY] = "no memory", *answer = NULL;
	const struct ft_http_place to = place_of(e);

	if (body)
		answer = ft_http_post(&to, path, body, boot_clock_us() + us, why);
	free(body);
	if (!answer)
		snprintf(e->why, sizeof(e->why), "etcd at %.150s:%s: %.250s", e->host,
			 e->port, why);
	return answer;
}

static bool says_true(const char *answer, const char *name)
{
	size_t len;
	const char *at = ft_json_find(answer, name, &len);

	return at && len == 4 && strncmp(at, "true", 4) == 0;
}

/* ---- the lease --------------------------------------------------------------------- */

static int take_lease(struct ft_etcd *e)
{
	char *answer = post(e, "/v3/lease/grant",
			    text_of(NULL, "{\"TTL\":\"%d\"}", FT_ETCD_LEASE), ASK_US);
	const char *id;
	size_t len;

	if (!answer)
		return -EIO;
	id = ft_json_find(answer, "ID", &len);
	if (id && len > 0 && len < sizeof(e->lease) && strspn(id, "0123456789-") >= len) {
		memcpy(e->lease, id, len);
		e->lease[len] = '\0';
	} else {
		snprintf(e->why, sizeof(e->why), "etcd at %.200s:%s gave no lease",
			 e->host, e->port);
	}
	free(answer);
	return *e->lease ? 0 : -EIO;
}

static void give_lease(struct ft_etcd *e)
{
	char why[sizeof(e->why)];

	if (!*e->lease)
		return;
	memcpy(why, e->why, sizeof(why)); /* what failed before is what counts */
	free(post(e, "/v3/lease/revoke", text_of(NULL, "{\"ID\":\"%s\"}", e->lease),
		  ASK_US));
	memcpy(e->why, why, sizeof(why));
	*e->lease = '\0';
}

/* Whether the lease still is, as far as etcd answers. */
static bool renew(const struct ft_etcd *e, bool *answered)
{
	char why[FT_HTTP_WHY], *answer = NULL, *body;
	const struct ft_http_place to = place_of(e);
	bool good = false;
	size_t len;

	text_of(&body, "{\"ID\":\"%s\"}", e->lease);
	if (body)
		answer = ft_http_post(&to, "/v3/lease/keepalive", body,
				      boot_clock_us() + RENEW_US, why);
	free(body);
	*answered = answer != NULL;
	if (answer)
		good = ft_json_find(answer, "TTL", &len) != NULL;
	free(answer);
	return good;
}

/* That a lease ended is told so that the process ends soon; that nothing is kept after it
 * is for the condition under which everything is written. */
static void *keep_lease(void *arg)
{
	struct ft_etcd *e = arg;

	pthread_mutex_lock(&e->lock);
	while (!e->ending) {
		int64_t next = boot_clock_us() + RENEW_US;
		struct timespec at = {next / 1000000, next % 1000000 * 1000};
		bool answered, good;

		pthread_mutex_unlock(&e->lock);
		good = renew(e, &answered);
		if (answered && !good)
			atomic_store(&e->lost, true);
		pthread_mutex_lock(&e->lock);
		while (!e->ending && boot_clock_us() < next)
			pthread_cond_timedwait(&e->cond, &e->lock, &at);
	}
	pthread_mutex_unlock(&e->lock);
	return NULL;
}

static int start_thread(struct ft_etcd *e)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&e->thread, NULL, keep_lease, e);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	e->running = rc == 0;
	if (rc)
		snprintf(e->why, sizeof(e->why), "no thread: %s", strerror(rc));
	return -rc;
}

/* ---- leading ----------------------------------------------------------------------- */

/* Who leads, by the answer to a transaction that failed. */
static void say_leader(struct ft_etcd *e, const char *answer)
{
	size_t len, text_len;
	const char *value = ft_json_find(answer, "value", &len);
	uint8_t *text = value ? ft_base64_get(value, len, &text_len) : NULL;
	char shown[100] = "?";

	for (size_t i = 0; text && i < text_len && i < sizeof(shown) - 1; i++) {
		shown[i] = isprint(text[i]) ? (char)text[i] : '?';
		shown[i + 1] = '\0';
	}
	free(text);
	snprintf(e->why, sizeof(e->why), "the coordinator that listens at %s leads",
		 shown);
}

/* 0, -EAGAIN: another has the key, or -EIO. */
static int take_lead(struct ft_etcd *e, const char *address)
{
	char *key = key_of(e, "leader"), *value = ft_base64_put(address, strlen(address));
	char *body = NULL, *answer = NULL;
	int rc = -EIO;

	if (key && value)
		text_of(&body,
			"{\"compare\":[{\"key\":\"%s\",\"target\":\"CREATE\","
			"\"result\":\"EQUAL\",\"create_revision\":\"0\"}],"
			"\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":\"%s\","
			"\"lease\":\"%s\"}}],"
			"\"failure\":[{\"request_range\":{\"key\":\"%s\"}}]}",
			key, key, value, e->lease, key);
	answer = post(e, "/v3/kv/txn", body, ASK_US);
	if (answer && says_true(answer, "succeeded")) {
		rc = 0;
	} else if (answer) {
		say_leader(e, answer);
		rc = -EAGAIN;
	}
	free(answer);
	free(key);
	free(value);
	return rc;
}

/* ---- what is kept ------------------------------------------------------------------ */

/* Puts a value (allocated, freed here) at a key, if this one still leads. */
static bool put(struct ft_etcd *e, const char *name, char *value)
{
	char *key = key_of(e, name), *leader = key_of(e, "leader");
	char *body = NULL, *answer;
	bool good;

	if (key && leader && value)
		text_of(&body,
			"{\"compare\":[{\"key\":\"%s\",\"target\":\"LEASE\","
			"\"result\":\"EQUAL\",\"lease\":\"%s\"}],"
			"\"success\":[{\"request_put\":{\"key\":\"%s\",\"value\":"
			"\"%s\"}}]}",
			leader, e->lease, key, value);
	answer = post(e, "/v3/kv/txn", body, SAVE_US);
	good = answer && says_true(answer, "succeeded");
	if (answer && !good) {
		snprintf(e->why, sizeof(e->why), "another coordinator leads by now");
		atomic_store(&e->lost, true);
	}
	free(answer);
	free(key);
	free(leader);
	free(value);
	return good;
}

static char *commit_value(const struct ft_durable *d)
{
	char text[80];

	snprintf(text, sizeof(text), "%" PRIx64 ".%" PRIx64 ".%" PRIx64,
		 d->commit.epoch.term, d->commit.epoch.seq, d->commit.step);
	return ft_base64_put(text, strlen(text));
}

static char *state_value(const struct ft_etcd *e, const struct ft_durable *d)
{
	size_t len;
	uint8_t *bytes = ft_snapshot_put(d, e->job, &len);
	char *text = bytes ? ft_base64_put(bytes, len) : NULL;

	free(bytes);
	return text;
}

/* Writing the same again does no harm, so what may have been written or not is written
 * again, until etcd says either. */
bool ft_etcd_save(struct ft_etcd *e, enum ft_saved what, const struct ft_durable *d)
{
	int64_t until = boot_clock_us() + SAVE_US;
	bool good = false;

	while (!good && !e->broken && !atomic_load(&e->lost)) {
		good = what == FT_SAVE_COMMIT ? put(e, "commit", commit_value(d))
					      : put(e, "state", state_value(e, d));
		if (!good && boot_clock_us() >= until)
			e->broken = true;
		else if (!good)
			usleep(10000);
	}
	return good;
}

/* The value at a key: allocated; *len 0 and NULL: there is none. */
static int get(struct ft_etcd *e, const char *name, uint8_t **value, size_t *len)
{
	char *key = key_of(e, name), *body = NULL, *answer;
	const char *text;
	size_t text_len;
	int rc = 0;

	*value = NULL;
	*len = 0;
	if (key)
		text_of(&body, "{\"key\":\"%s\"}", key);
	free(key);
	answer = post(e, "/v3/kv/range", body, ASK_US);
	if (!answer)
		return -EIO;
	text = ft_json_find(answer, "value", &text_len);
	if (text) {
		*value = ft_base64_get(text, text_len, len);
		rc = *value ? 0 : -EIO;
	}
	if (rc)
		snprintf(e->why, sizeof(e->why), "%.200s/%s holds no value of this kind",
			 e->prefix, name);
	free(answer);
	return rc;
}

/* The last step that counted, where that was in the epoch of the state. */
static int read_commit(struct ft_etcd *e)
{
	struct ft_commit c;
	char text[80] = "";
	uint8_t *bytes;
	size_t len;
	int end = 0, rc = get(e, "commit", &bytes, &len);

	if (rc || !bytes)
		return rc;
	if (len < sizeof(text))
		memcpy(text, bytes, len);
	free(bytes);
	if (sscanf(text, "%" SCNx64 ".%" SCNx64 ".%" SCNx64 "%n", &c.epoch.term,
		   &c.epoch.seq, &c.step, &end) != 3 ||
	    text[end]) {
		snprintf(e->why, sizeof(e->why), "%.200s/commit is none", e->prefix);
		return -EINVAL;
	}
	if (ft_epoch_same(c.epoch, e->kept.active.epoch) && c.step > e->kept.commit.step)
		e->kept.commit = c;
	return 0;
}

static int read_state(struct ft_etcd *e, bool *found)
{
	const char *fault;
	size_t len, used;
	uint8_t *bytes;
	int rc = get(e, "state", &bytes, &len);

	*found = rc == 0 && bytes;
	if (!*found)
		return rc;
	fault = ft_snapshot_get(bytes, len, e->job, &e->kept, &used);
	free(bytes);
	if (fault) {
		snprintf(e->why, sizeof(e->why),
			 "%.200s/state %s; name another prefix, or delete the key to "
			 "have the state rebuilt from the ranks",
			 e->prefix, fault);
		return -EINVAL;
	}
	return read_commit(e);
}

/* ---- opening and closing ----------------------------------------------------------- */

/* With TLS, by the files that the environment names. */
static int open_tls(struct ft_etcd *e)
{
	const struct ft_tls_files files = {.ca = getenv("WEFT_ETCD_CA"),
					   .cert = getenv("WEFT_ETCD_CERT"),
					   .key = getenv("WEFT_ETCD_KEY")};
	char why[FT_TLS_WHY];
	int rc = ft_tls_open(&files, &e->tls, why);

	if (rc)
		snprintf(e->why, sizeof(e->why),
			 "%.300s (WEFT_ETCD_CA, WEFT_ETCD_CERT, WEFT_ETCD_KEY)", why);
	return rc;
}

static bool is_tls(const char *name)
{
	return strncmp(name, "etcds:", 6) == 0;
}

/* "etcd://host:port/prefix", or etcds */
static int parse_name(struct ft_etcd *e, const char *name)
{
	const char *scheme = is_tls(name) ? "etcds://" : "etcd://";
	const size_t skip = strlen(scheme);
	const char *slash = NULL;
	char place[FT_DIAL_HOST + 16];

	if (strncmp(name, scheme, skip) == 0)
		slash = strchr(name + skip, '/');
	if (slash && slash[1] && strlen(slash) < sizeof(e->prefix) &&
	    (size_t)(slash - name) - skip < sizeof(place)) {
		snprintf(place, sizeof(place), "%.*s", (int)(slash - name - (int)skip),
			 name + skip);
		snprintf(e->prefix, sizeof(e->prefix), "%s", slash + 1);
		if (ft_dial_parse(place, 1, e->host, e->port))
			return 0;
	}
	snprintf(e->why, sizeof(e->why),
		 "\"%.200s\" must be etcd://HOST:PORT/PREFIX, or etcds:// for TLS, the "
		 "prefix "
		 "of at most %d characters",
		 name, PREFIX_MAX - 2);
	return -EINVAL;
}

static void init_lock(struct ft_etcd *e)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&e->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&e->cond, &attr);
	pthread_condattr_destroy(&attr);
}

int ft_etcd_open(const char *name, const char *address, const uint8_t *job,
		 struct ft_etcd **etcd, const struct ft_durable **kept,
		 char why[FT_KEEP_WHY])
{
	struct ft_etcd *e = calloc(1, sizeof(*e));
	bool found = false;
	int rc;

	if (!e) {
		snprintf(why, FT_KEEP_WHY, "no memory");
		return -ENOMEM;
	}
	memcpy(e->job, job, sizeof(e->job));
	init_lock(e);
	rc = parse_name(e, name);
	if (rc == 0 && is_tls(name))
		rc = open_tls(e);
	if (rc == 0)
		rc = take_lease(e);
	if (rc == 0)
		rc = take_lead(e, address);
	if (rc == 0)
		rc = read_state(e, &found);
	if (rc == 0)
		rc = start_thread(e);
	if (rc) {
		give_lease(e);
		snprintf(why, FT_KEEP_WHY, "%s", e->why);
		ft_etcd_close(e);
		return rc;
	}
	*etcd = e;
	*kept = found ? &e->kept : NULL;
	return 0;
}

void ft_etcd_close(struct ft_etcd *e)
{
	if (!e)
		return;
	if (e->running) {
		pthread_mutex_lock(&e->lock);
		e->ending = true;
		pthread_cond_signal(&e->cond);
		pthread_mutex_unlock(&e->lock);
		pthread_join(e->thread, NULL);
	}
	give_lease(e);
	pthread_cond_destroy(&e->cond);
	pthread_mutex_destroy(&e->lock);
	ft_roster_fini(&e->kept.active);
	ft_tls_close(e->tls);
	free(e);
}

bool ft_etcd_lost(const struct ft_etcd *e)
{
	return atomic_load(&e->lost);
}

const char *ft_etcd_why(const struct ft_etcd *e)
{
	return atomic_load(&e->lost) ? "another coordinator leads by now, or may: the "
				       "lease in etcd has ended"
				     : e->why;
}
