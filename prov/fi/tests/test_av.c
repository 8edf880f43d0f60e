/* SPDX-License-Identifier: BSD-2-Clause */
/* Address vector: handles, duplicates, results by return, array and event; names; and the
 * table behind it against a plain model. */
#include "config.h"

#include <arpa/inet.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include "prov/fi/av.h"
#include "prov/fi/av_table.h"
#include "prov/fi/tests/fi_test.h"
#include "util/tap.h"

static struct env env;

static struct sockaddr_in v4(const char *host, uint16_t port)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

	inet_pton(AF_INET, host, &in.sin_addr);
	return in;
}

static struct fid_av *av_open(struct env *e, enum fi_av_type type, uint64_t flags)
{
	struct fi_av_attr attr = {.type = type, .flags = flags};
	struct fid_av *av;

	if (fi_av_open(e->domain, &attr, &av, NULL))
		tap_bail("no vector");
	return av;
}

struct watcher {
	struct wfi_av_user base; /* first */
	struct wfi_av *av;
	int inserted;
	int removed;
	bool there; /* at each call the entry could be seen */
};

static void watch_inserted(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	struct watcher *w = (struct watcher *)u;

	w->inserted++;
	w->there = w->there && wfi_av_addr(w->av, fi_addr);
}

static void watch_removed(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	struct watcher *w = (struct watcher *)u;

	w->removed++;
	w->there = w->there && wfi_av_addr(w->av, fi_addr);
}

static void test_handles(enum fi_av_type type)
{
	struct fid_av *av = av_open(&env, type, 0);
	struct sockaddr_in in[4] = {v4("10.0.0.1", 1), v4("10.0.0.2", 1),
				    v4("10.0.0.1", 1), v4("10.0.0.3", 0)};
	struct watcher w = {
		.base = {.inserted = watch_inserted, .removed = watch_removed},
		.av = wfi_av_of(&av->fid),
		.there = true};
	fi_addr_t h[4], again;
	struct sockaddr_in got;
	size_t len = sizeof(got);

	list_init(&w.base.node);
	wfi_av_attach(w.av, &w.base);
	tap_is_int(fi_av_insert(av, in, 4, h, 0, NULL), 3, "three of four are addresses");
	tap_ok(h[0] == 0 && h[1] == 1 && h[2] == 2,
	       "dense handles, a duplicate has its own");
	tap_is_int((int64_t)h[3], (int64_t)FI_ADDR_NOTAVAIL, "no port: no handle");
	tap_is_int(fi_av_lookup(av, 1, &got, &len), 0, "look up");
	tap_is_mem(&got.sin_addr, &in[1].sin_addr, 4, "the host");
	tap_is_int((int64_t)len, sizeof(got), "the length");
	len = 4;
	tap_is_int(fi_av_lookup(av, 1, &got, &len), 0, "with too little room");
	tap_is_int((int64_t)len, sizeof(got), "the full length all the same");
	len = sizeof(got);
	tap_is_int(fi_av_lookup(av, 3, &got, &len), -FI_EINVAL, "a bad handle");
	tap_is_int(fi_av_lookup(av, FI_ADDR_NOTAVAIL, &got, &len), -FI_EINVAL,
		   "no handle");
	tap_is_int((int64_t)wfi_av_find(w.av, wfi_av_addr(w.av, 2)), 0,
		   "the lowest is found");
	tap_is_int(fi_av_remove(av, &h[0], 1, 0), 0, "remove it");
	tap_is_int(fi_av_remove(av, &h[0], 1, 0), -FI_EINVAL, "once");
	tap_is_int((int64_t)wfi_av_find(w.av, wfi_av_addr(w.av, 2)), 2,
		   "its twin is found");
	tap_is_int(fi_av_insert(av, &in[0], 1, &again, 0, NULL), 1, "insert it again");
	tap_is_int((int64_t)again, 0, "the lowest free handle");
	tap_ok(w.inserted == 4 && w.removed == 1 && w.there,
	       "the user was told, in time");
	tap_is_int(fi_av_insert(av, in, 1, NULL, 0, NULL),
		   type == FI_AV_MAP ? -FI_EINVAL : 1,
		   "no place for handles: a table's are known");
	tap_is_int(fi_close(&av->fid), -FI_EBUSY, "no close while used");
	wfi_av_detach(w.av, &w.base);
	tap_is_int(fi_close(&av->fid), 0, "close");
}

static void test_reports(void)
{
	struct sockaddr_in in[3] = {v4("10.0.0.1", 1), v4("0.0.0.0", 1),
				    v4("10.0.0.2", 1)};
	struct fid_av *av = av_open(&env, FI_AV_TABLE, 0);
	struct fi_eq_attr attr = {.flags = FI_WRITE};
	struct fi_eq_err_entry error = {0};
	struct fi_eq_entry entry = {0};
	int errs[3] = {-1, -1, -1}, context;
	fi_addr_t h[3];
	struct fid_eq *eq;
	uint32_t event;

	tap_is_int(fi_av_insert(av, in, 3, h, FI_SYNC_ERR, errs), 2, "errors by array");
	tap_ok(!errs[0] && errs[1] == FI_EINVAL && !errs[2], "each at its place");
	tap_is_int(fi_av_insert(av, in, 3, h, FI_SYNC_ERR, NULL), -FI_EINVAL, "no array");
	fi_close(&av->fid);

	av = av_open(&env, FI_AV_MAP, FI_EVENT);
	tap_is_int(fi_av_insert(av, in, 3, h, 0, &context), -FI_ENOEQ,
		   "events need a queue");
	fi_eq_open(env.fabric, &attr, &eq, NULL);
	tap_is_int(fi_av_bind(av, &eq->fid, 0), 0, "bind one");
	tap_is_int(fi_av_bind(av, &eq->fid, 0), -FI_EINVAL, "only one");
	tap_is_int(fi_close(&eq->fid), -FI_EBUSY, "it stays while bound");
	tap_is_int(fi_av_insert(av, in, 3, h, 0, &context), 0, "insert");
	tap_is_int(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), -FI_EAVAIL,
		   "an error");
	tap_is_int(fi_eq_readerr(eq, &error, 0), sizeof(error), "read it");
	tap_ok(error.data == 1 && error.context == &context && error.fid == &av->fid,
	       "of the second");
	tap_is_int(fi_eq_read(eq, &event, &entry, sizeof(entry), 0), sizeof(entry),
		   "an event");
	tap_ok(event == FI_AV_COMPLETE && entry.data == 2 && entry.context == &context,
	       "two were inserted");
	tap_ok(h[0] == 0 && h[1] == FI_ADDR_NOTAVAIL && h[2] == 1, "the handles");
	fi_close(&av->fid);
	tap_is_int(fi_close(&eq->fid), 0, "the queue is free again");
}

static int renamed;

static void on_renamed(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	(void)u;
	renamed = (int)fi_addr;
}

static void on_nothing(struct wfi_av_user *u, fi_addr_t fi_addr)
{
	(void)u;
	(void)fi_addr;
}

/* What completions call them, given with the addresses or later. */
static void test_user_ids(void)
{
	struct sockaddr_in in[2] = {v4("10.0.0.1", 1), v4("10.0.0.2", 1)};
	struct wfi_av_user u = {
		.inserted = on_nothing, .removed = on_nothing, .renamed = on_renamed};
	struct fid_av *av = av_open(&env, FI_AV_TABLE, 0);
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_AV_USER_ID};
	fi_addr_t h[3] = {70, 71};
	struct wfi_av *inside = wfi_av_of(&av->fid);

	tap_is_int(fi_av_insert(av, in, 2, h, FI_AV_USER_ID, NULL), 2, "with ids");
	tap_ok(h[0] == 0 && h[1] == 1, "the handles come instead");
	tap_ok(wfi_av_told(inside, 0) == 70 && wfi_av_told(inside, 1) == 71, "the ids");
	tap_is_int(fi_av_insert(av, in, 1, h + 2, 0, NULL), 1, "without");
	tap_is_int((int64_t)wfi_av_told(inside, 2), 2, "it is the handle");
	tap_is_int((int64_t)wfi_av_told(inside, 9), (int64_t)FI_ADDR_NOTAVAIL, "nobody");
	tap_is_int(fi_av_insert(av, in, 2, NULL, FI_AV_USER_ID, NULL), -FI_EINVAL,
		   "nowhere to get ids from");
	fi_close(&av->fid);
#ifdef HAVE_STRUCT_FI_OPS_AV_SET_USER_ID
	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), 0, "ids come later");
	inside = wfi_av_of(&av->fid);
	tap_is_int(fi_av_insert(av, in, 2, h, FI_AV_USER_ID, NULL), -FI_EINVAL,
		   "so not now");
	tap_is_int(fi_av_insert(av, in, 2, h, 0, NULL), 2, "insert");
	tap_is_int((int64_t)wfi_av_told(inside, 1), (int64_t)FI_ADDR_NOTAVAIL,
		   "told as nobody");
	wfi_av_attach(inside, &u);
	tap_is_int(fi_av_set_user_id(av, 1, 50, 0), 0, "set");
	tap_ok(wfi_av_told(inside, 1) == 50 && renamed == 1, "and told");
	tap_is_int(fi_av_set_user_id(av, 2, 50, 0), -FI_EINVAL, "of no entry");
	tap_is_int(fi_av_set_user_id(av, 1, 50, 1), -FI_EBADFLAGS, "flags");
	wfi_av_detach(inside, &u);
	fi_close(&av->fid);
#else
	(void)u;
	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), -FI_EBADFLAGS,
		   "there is no call to set them later");
#endif
}

static void test_refused(void)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_READ};
	struct fid_av *av;

	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), -FI_EINVAL,
		   "read only, and no name");
	attr.name = "weft test: nobody has this";
	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), -FI_ENOENT,
		   "read only, and nobody has it");
	attr = (struct fi_av_attr){.name = ""};
	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), -FI_EINVAL, "no name");
	attr = (struct fi_av_attr){.type = 99};
	tap_is_int(fi_av_open(env.domain, &attr, &av, NULL), -FI_EINVAL,
		   "an unknown type");
}

static void test_names(void)
{
	struct fid_av *av = av_open(&env, FI_AV_TABLE, 0);
	char small[8], text[96];
	struct sockaddr_in got;
	size_t len;
	fi_addr_t h[6];

	tap_is_int(fi_av_insertsvc(av, "127.0.0.1", "9228", h, 0, NULL), 1, "by service");
	tap_is_int(fi_av_insertsvc(av, "127.0.0.1", "no-such-service", h + 1, 0, NULL), 0,
		   "an unknown service");
	tap_is_int((int64_t)h[1], (int64_t)FI_ADDR_NOTAVAIL, "has no handle");
	tap_is_int(fi_av_insertsvc(av, NULL, "1", h, 0, NULL), -FI_EINVAL, "no node");
	tap_is_int(fi_av_insertsym(av, "10.0.0.255", 2, "5000", 3, h, 0, NULL), 6,
		   "two hosts, three services");
	len = sizeof(got);
	fi_av_lookup(av, h[5], &got, &len);
	tap_ok(got.sin_addr.s_addr == inet_addr("10.0.1.0") &&
		       ntohs(got.sin_port) == 5002,
	       "the last is counted up in both");
	tap_is_int(fi_av_insertsym(av, "10.0.0.1", 1, "x", 1, h, 0, NULL), -FI_EINVAL,
		   "a service that is no number");
	tap_is_int(fi_av_insertsym(av, "10.0.0.1", 1, "65535", 2, h, 0, NULL), 1,
		   "past the last port");
	len = sizeof(text);
	tap_is_str(fi_av_straddr(av, &got, text, &len), "fi_sockaddr_in://10.0.1.0:5002",
		   "as text");
	tap_is_int((int64_t)len, (int64_t)strlen(text) + 1, "its size");
	len = sizeof(small);
	tap_is_str(fi_av_straddr(av, &got, small, &len), "fi_sock", "cut to the room");
	tap_is_int((int64_t)len, (int64_t)strlen(text) + 1, "with the size it needs");
	fi_close(&av->fid);
}

static void test_ipv6(void)
{
	struct sockaddr_in6 in[2] = {{.sin6_family = AF_INET6,
				      .sin6_port = htons(1),
				      .sin6_addr = in6addr_loopback},
				     {.sin6_family = AF_INET6,
				      .sin6_port = htons(2),
				      .sin6_addr = in6addr_loopback}};
	struct env e;
	struct fid_av *av;
	fi_addr_t h[2];
	char text[96];
	size_t len = sizeof(text);

	env_open(&e, &(struct env_want){.addr_format = FI_SOCKADDR_IN6});
	av = av_open(&e, FI_AV_TABLE, 0);
	tap_is_int(fi_av_insert(av, in, 2, h, 0, NULL), 2, "two IPv6 addresses");
	tap_is_str(fi_av_straddr(av, &in[1], text, &len), "fi_sockaddr_in6://[::1]:2",
		   "text");
	tap_is_int(fi_av_insertsvc(av, "::1", "3", h, 0, NULL), 1, "by service");
	fi_close(&av->fid);
	env_close(&e);
}

/* ---- the table against a model
 * ------------------------------------------------------- */

#define MODEL_ROWS  400
#define MODEL_HOSTS 40

static uint64_t rng;

static uint32_t random_below(uint32_t n)
{
	rng = rng * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((rng >> 33) % n);
}

static int model_find(const int *model, int host)
{
	for (int i = 0; i < MODEL_ROWS; i++) {
		if (model[i] == host)
			return i;
	}
	return -1;
}

static bool model_step(struct av_table *t, int *model)
{
	int host = (int)random_below(MODEL_HOSTS);
	struct sockaddr_in in = v4("10.0.0.1", (uint16_t)(host + 1));
	struct wire_addr addr;
	uint32_t index = random_below(MODEL_ROWS), found;
	int want;

	wire_addr_from_sockaddr(&addr, (struct sockaddr *)&in, sizeof(in));
	if (random_below(2) && model[index] >= 0) {
		av_table_remove(t, index);
		model[index] = -1;
	} else {
		want = model_find(model, -1);
		if (want < 0)
			return true;
		if (av_table_insert(t, &addr, &index) || (int)index != want)
			return false;
		model[index] = host;
	}
	found = av_table_find(t, &addr);
	want = model_find(model, host);
	return want < 0 ? found == AV_TABLE_NONE : (int)found == want;
}

static void test_model(void)
{
	struct av_table t;
	int model[MODEL_ROWS];
	bool good = true;

	rng = (uint64_t)time(NULL);
	tap_diag("seed %" PRIu64, rng);
	for (int i = 0; i < MODEL_ROWS; i++)
		model[i] = -1;
	av_table_init(&t);
	for (int i = 0; good && i < 40000; i++)
		good = model_step(&t, model);
	tap_ok(good, "40000 random steps: the lowest free, the lowest of an address");
	for (uint32_t i = 0; i < MODEL_ROWS; i++) {
		if (model[i] >= 0)
			av_table_remove(&t, i);
	}
	tap_ok(!t.count && !t.limit, "emptied");
	av_table_fini(&t);
}

/* Rows at indices that somebody else chose, who may say the same twice. */
static void test_place(void)
{
	struct sockaddr_in in = v4("10.0.0.1", 1);
	struct wire_addr addr;
	struct av_table t;
	bool good = true;

	wire_addr_from_sockaddr(&addr, (struct sockaddr *)&in, sizeof(in));
	av_table_init(&t);
	for (uint32_t i = 0; i < 16; i++)
		good = good && av_table_place(&t, &addr, i) == 0;
	av_table_remove(&t, 3);
	tap_ok(good && t.limit == t.room, "a full table with a hole");
	tap_is_int(av_table_place(&t, &addr, 15), -FI_EINVAL, "a row that is in use");
	tap_ok(t.limit <= t.room && t.count == 15, "and nothing is behind the last");
	tap_is_int(av_table_place(&t, &addr, 3), 0, "the hole");
	av_table_fini(&t);
}

/* One address a hundred thousand times, in and out: minutes if it were not constant. */
static void test_duplicates(void)
{
	struct sockaddr_in in = v4("10.0.0.1", 1);
	struct wire_addr addr;
	struct av_table t;
	uint32_t index;

	wire_addr_from_sockaddr(&addr, (struct sockaddr *)&in, sizeof(in));
	av_table_init(&t);
	for (int i = 0; i < 100000; i++)
		av_table_insert(&t, &addr, &index);
	tap_is_int(av_table_find(&t, &addr), 0, "100000 equal addresses");
	for (uint32_t i = 0; i < 100000; i++)
		av_table_remove(&t, i);
	tap_is_int(av_table_find(&t, &addr), AV_TABLE_NONE, "gone");
	av_table_fini(&t);
}

int main(void)
{
	env_open(&env, &(struct env_want){0});
	test_handles(FI_AV_TABLE);
	test_handles(FI_AV_MAP);
	test_reports();
	test_user_ids();
	test_refused();
	test_names();
	test_ipv6();
	test_model();
	test_place();
	test_duplicates();
	env_close(&env);
	return tap_done();
}
