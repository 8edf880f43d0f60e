/* SPDX-License-Identifier: BSD-2-Clause */
/* A bad network; see uet_shim.h. */
#include "config.h"

#include "prov/wire/uet/uet_shim.h"

#include <stdlib.h>
#include <string.h>

#define RATE_ONE UINT32_MAX

struct held {
	uint64_t due;
	uint64_t order; /* of those that are due together the earlier first */
	size_t len;
	struct wire_addr to;
	uint8_t path, tos, kind;
	bool used;
	uint8_t data[UET_SHIM_LEN];
};

struct uet_shim {
	struct uet_shim_config config;
	struct uet_shim_stats stats;
	uint64_t random;
	uint64_t next_due;
	unsigned held;
	struct held slot[UET_SHIM_HELD];
};

/* ---- reading ----------------------------------------------------------------------- */

static bool read_rate(const char *text, const char *end, uint32_t *rate)
{
	char *stop;
	double v = strtod(text, &stop);

	if (stop == text || stop != end || !(v >= 0 && v <= 1))
		return false;
	*rate = (uint32_t)(v * RATE_ONE);
	return true;
}

static bool read_number(const char *text, const char *end, uint64_t max, uint64_t *value)
{
	char *stop;
	unsigned long long v;

	if (text[0] < '0' || text[0] > '9')
		return false;
	v = strtoull(text, &stop, 10);
	if (stop != end || v > max)
		return false;
	*value = v;
	return true;
}

/* Microseconds, up to a minute. */
static bool read_us(const char *text, const char *end, uint64_t *ns)
{
	if (!read_number(text, end, 60000000, ns))
		return false;
	*ns *= 1000;
	return true;
}

static const char *colon_in(const char *text, const char *end)
{
	const char *c = memchr(text, ':', (size_t)(end - text));

	return c ? c : end;
}

static bool read_reorder(const char *text, const char *end, struct uet_shim_config *c)
{
	const char *colon = colon_in(text, end);

	return colon < end && read_rate(text, colon, &c->reorder) &&
	       read_us(colon + 1, end, &c->reorder_ns);
}

static bool read_hole(const char *text, const char *end, struct uet_shim_config *c)
{
	const char *colon = colon_in(text, end);
	const char *second;
	uint64_t path;

	c->holes = 0;
	c->hole_from = 0;
	c->hole_to = UINT64_MAX;
	for (const char *at = text; at <= colon;) {
		const char *plus = memchr(at, '+', (size_t)(colon - at));
		const char *stop = plus ? plus : colon;

		if (!read_number(at, stop, UET_SOCK_PATHS - 1, &path))
			return false;
		c->holes |= UINT32_C(1) << path;
		at = stop + 1;
	}
	if (colon == end)
		return true;
	second = colon_in(colon + 1, end);
	return second < end &&
	       read_number(colon + 1, second, UINT64_MAX, &c->hole_from) &&
	       read_number(second + 1, end, UINT64_MAX, &c->hole_to);
}

static bool read_one(const char *key, size_t len, const char *text, const char *end,
		     struct uet_shim_config *c)
{
	const struct {
		const char *name;
		uint32_t *rate;
	} rates[] = {
		{"drop", &c->drop},	  {"ackdrop", &c->ack_drop}, {"dup", &c->dup},
		{"corrupt", &c->corrupt}, {"mark", &c->mark},
	};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		if (strlen(rates[i].name) == len && strncmp(rates[i].name, key, len) == 0)
			return read_rate(text, end, rates[i].rate);
	}
	if (len == 4 && strncmp(key, "seed", 4) == 0)
		return read_number(text, end, UINT64_MAX, &c->seed);
	if (len == 5 && strncmp(key, "delay", 5) == 0)
		return read_us(text, end, &c->delay_ns);
	if (len == 7 && strncmp(key, "reorder", 7) == 0)
		return read_reorder(text, end, c);
	if (len == 4 && strncmp(key, "hole", 4) == 0)
		return read_hole(text, end, c);
	return false;
}

bool uet_shim_parse(const char *text, struct uet_shim_config *config, const char **why)
{
	*config = (struct uet_shim_config){.seed = 1};
	*why = "it is KEY=VALUE,... with seed=N, drop=, ackdrop=, dup=, corrupt= and "
	       "mark= "
	       "from 0 to 1, reorder=RATE:US, delay=US, hole=PATH[+PATH...][:FROM:TO]";
	for (const char *at = text; *at;) {
		const char *end = at + strcspn(at, ",");
		const char *eq = memchr(at, '=', (size_t)(end - at));

		if (!eq || !read_one(at, (size_t)(eq - at), eq + 1, end, config))
			return false;
		at = *end ? end + 1 : end;
	}
	*why = NULL;
	return true;
}

/* ---- doing ------------------------------------------------------------------------- */

struct uet_shim *uet_shim_open(const struct uet_shim_config *config)
{
	struct uet_shim *shim = calloc(1, sizeof(*shim));

	if (!shim)
		return NULL;
	shim->config = *config;
	shim->random = config->seed;
	shim->next_due = UINT64_MAX;
	return shim;
}

void uet_shim_close(struct uet_shim *shim)
{
	free(shim);
}

const struct uet_shim_stats *uet_shim_stats(const struct uet_shim *shim)
{
	return &shim->stats;
}

/* splitmix64 */
static uint64_t draw(struct uet_shim *shim)
{
	uint64_t z = shim->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool hit(struct uet_shim *shim, uint32_t rate)
{
	return (uint32_t)(draw(shim) >> 32) < rate;
}

struct fate {
	bool drop, dup, corrupt, mark;
	uint64_t hold;
	uint64_t bit;
};

/* As many draws for each datagram, so that one fate doesn't change the others'. */
static struct fate fate_of(struct uet_shim *shim, const struct uet_tx *tx)
{
	const struct uet_shim_config *c = &shim->config;
	uint64_t n = shim->stats.seen++;
	struct fate f = {.hold = c->delay_ns};
	bool late, swallowed;
	uint64_t by;

	f.drop = hit(shim, c->drop);
	f.drop |= hit(shim, c->ack_drop) && tx->kind == UET_TX_ACK;
	f.dup = hit(shim, c->dup);
	f.corrupt = hit(shim, c->corrupt);
	f.mark = hit(shim, c->mark) && (tx->tos & 3) != 0;
	late = hit(shim, c->reorder);
	by = draw(shim);
	f.bit = draw(shim);
	if (late && c->reorder_ns)
		f.hold += 1 + by % c->reorder_ns;
	swallowed = (c->holes >> tx->path & 1) && n >= c->hole_from && n < c->hole_to;
	shim->stats.swallowed += swallowed;
	shim->stats.dropped += f.drop && !swallowed;
	f.drop |= swallowed;
	return f;
}

static bool is_plain(const struct fate *f)
{
	return !f->drop && !f->dup && !f->corrupt && !f->mark && !f->hold;
}

static void copy_out(const struct uet_tx *tx, uint8_t *data)
{
	for (unsigned i = 0; i < tx->iov_count; i++) {
		memcpy(data, tx->iov[i].iov_base, tx->iov[i].iov_len);
		data += tx->iov[i].iov_len;
	}
}

static struct held *slot_get(struct uet_shim *shim)
{
	for (unsigned i = 0; i < UET_SHIM_HELD; i++) {
		if (!shim->slot[i].used)
			return &shim->slot[i];
	}
	return NULL;
}

static void let_go(struct uet_shim *shim, struct held *h, uet_shim_out *out, void *arg)
{
	struct uet_tx tx = {.to = &h->to,
			    .len = h->len,
			    .iov_count = 1,
			    .iov[0] = {h->data, h->len},
			    .path = h->path,
			    .tos = h->tos,
			    .kind = h->kind};

	/* No room in the kernel: a network may lose it too. */
	out(arg, &tx, 1);
	h->used = false;
	shim->held--;
}

/* One copy of it, with what befell it. */
static void take_in(struct uet_shim *shim, const struct uet_tx *tx, const struct fate *f,
		    uint64_t now, uet_shim_out *out, void *arg)
{
	struct held *h = slot_get(shim);

	if (!h) {
		shim->stats.full++;
		out(arg, tx, 1);
		return;
	}
	*h = (struct held){.due = now + f->hold,
			   .order = shim->stats.seen,
			   .len = tx->len,
			   .to = *tx->to,
			   .path = tx->path,
			   .tos = tx->tos,
			   .kind = tx->kind,
			   .used = true};
	copy_out(tx, h->data);
	shim->held++;
	if (f->corrupt && h->len)
		h->data[f->bit / 8 % h->len] ^= (uint8_t)(1u << f->bit % 8);
	if (f->mark)
		h->tos |= 3;
	if (!f->hold) {
		let_go(shim, h, out, arg);
		return;
	}
	if (h->due < shim->next_due)
		shim->next_due = h->due;
}

static void befall(struct uet_shim *shim, const struct uet_tx *tx, const struct fate *f,
		   uint64_t now, uet_shim_out *out, void *arg)
{
	shim->stats.duplicated += f->dup && !f->drop;
	shim->stats.corrupted += f->corrupt && !f->drop;
	shim->stats.marked += f->mark && !f->drop;
	shim->stats.held += f->hold && !f->drop;
	if (f->drop)
		return;
	take_in(shim, tx, f, now, out, arg);
	if (f->dup)
		take_in(shim, tx, f, now, out, arg);
}

size_t uet_shim_send(struct uet_shim *shim, const struct uet_tx *tx, size_t count,
		     uint64_t now, uet_shim_out *out, void *arg)
{
	size_t plain = 0; /* from here to `i` nothing befalls them */

	if (!shim)
		return out(arg, tx, count);
	for (size_t i = 0; i < count; i++) {
		struct fate f = fate_of(shim, &tx[i]);
		size_t gone;

		if (is_plain(&f) || tx[i].len > UET_SHIM_LEN)
			continue;
		gone = i > plain ? out(arg, &tx[plain], i - plain) : 0;
		if (gone < i - plain)
			return plain + gone;
		befall(shim, &tx[i], &f, now, out, arg);
		plain = i + 1;
	}
	return plain < count ? plain + out(arg, &tx[plain], count - plain) : count;
}

static struct held *earliest(struct uet_shim *shim)
{
	struct held *first = NULL;

	for (unsigned i = 0; i < UET_SHIM_HELD && shim->held; i++) {
		struct held *h = &shim->slot[i];

		if (h->used && (!first || h->due < first->due ||
				(h->due == first->due && h->order < first->order)))
			first = h;
	}
	return first;
}

void uet_shim_poll(struct uet_shim *shim, uint64_t now, uet_shim_out *out, void *arg)
{
	struct held *h;

	if (!shim || now < shim->next_due)
		return;
	while ((h = earliest(shim)) && h->due <= now)
		let_go(shim, h, out, arg);
	shim->next_due = h ? h->due : UINT64_MAX;
}

uint64_t uet_shim_due(const struct uet_shim *shim)
{
	return shim ? shim->next_due : UINT64_MAX;
}
