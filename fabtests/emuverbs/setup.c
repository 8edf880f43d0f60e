/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of the emulated devices' file; one table row for each key and each fault. */
#include "config.h"

#include "fabtests/emuverbs/setup.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/span.h"

#define FORMAT "emuverbs"

static const char *const words_delivery[] = {"ordered", "mixed", "choice", NULL};
static const char *const words_placing[] = {"prompt", "late", NULL};
static const char *const words_state[] = {"active", "down", NULL};
static const char *const words_demand[] = {"none", "explicit", "implicit", NULL};
static const char *const words_atomics[] = {"none", "native", NULL};

static const char *const words_link[] = {"ethernet", "infiniband", NULL};
static const char *const words_gids[] = {"all", "none", NULL};
static const char *const words_last[] = {"said", "never", NULL};
static const char *const words_dmabuf[] = {"none", "taken", NULL};
static const char *const words_transport[] = {"reliable", "foreign", NULL};
static const char *const words_made[] = {"hardware", "software", NULL};
static const char *const words_rnr[] = {"retry", "fatal", NULL};

#define AT(field) offsetof(struct emu_device, field)

/* Initial values are those of a small common adapter. */
const struct emu_setup_key emu_setup_keys[] = {
	{"delivery", words_delivery, AT(delivery), EMU_ORDERED, 0, EMU_CHOICE},
	{"placing", words_placing, AT(late), 0, 0, 1},
	{"state", words_state, AT(down), 0, 0, 1},
	{"atomics", words_atomics, AT(atomics), 1, 0, 1},
	{"odp", words_demand, AT(demand), EMU_DEMAND_NONE, 0, EMU_DEMAND_IMPLICIT},
	{"link", words_link, AT(link), EMU_ETHERNET, 0, EMU_INFINIBAND},
	{"gids", words_gids, AT(gids), EMU_GIDS_ALL, 0, EMU_GIDS_NONE},
	{"rnr", words_rnr, AT(rnr), 0, 0, 1},
	{"dmabuf", words_dmabuf, AT(dmabuf), 0, 0, 1},
	{"transport", words_transport, AT(foreign), 0, 0, 1},
	{"made", words_made, AT(software), 0, 0, 1},
	{"last", words_last, AT(mute), 0, 0, 1},
	{"mtu", NULL, AT(mtu), 4096, 256, 4096},
	{"ports", NULL, AT(ports), 1, 1, 4},
	{"port", NULL, AT(port), 1, 1, 4},
	{"pkeys", NULL, AT(pkeys), 1, 1, 8},
	{"max_locked", NULL, AT(max_locked), 0, 0, 1 << 30},
	{"max_qp", NULL, AT(max_qp), 4096, 1, 1 << 14},
	{"max_qp_wr", NULL, AT(max_qp_wr), 4096, 1, 1 << 16},
	{"max_sge", NULL, AT(max_sge), 16, 1, 256},
	{"max_inline", NULL, AT(max_inline), 64, 0, 1024},
	{"max_cq", NULL, AT(max_cq), 1024, 1, 1 << 20},
	{"max_cqe", NULL, AT(max_cqe), 65535, 1, 1 << 22},
	{"max_mr", NULL, AT(max_mr), 65536, 1, 1 << 24},
	{"max_srq", NULL, AT(max_srq), 256, 0, 1 << 20},
	{"max_srq_wr", NULL, AT(max_srq_wr), 16384, 1, 1 << 16},
	{"max_rd_atomic", NULL, AT(max_rd_atomic), 16, 1, 255},
};
const size_t emu_setup_key_count = sizeof(emu_setup_keys) / sizeof(emu_setup_keys[0]);

static const char *const action_name[EMU_ACTIONS] = {
	[EMU_LOSE_SEGMENT] = "lose-segment",
	[EMU_LOSE_ACK] = "lose-ack",
	[EMU_LOSE_IMMEDIATE] = "lose-immediate",
	[EMU_LOSE_ROUTE] = "lose-route",
	[EMU_DENY] = "deny",
	[EMU_PORT_DOWN] = "port-down",
	[EMU_PORT_UP] = "port-up",
	[EMU_KILL_QP] = "kill-qp",
	[EMU_STALL_QP] = "stall-qp",
	[EMU_DEVICE_FATAL] = "device-fatal",
};

struct reader {
	struct emu_setup *setup;
	struct emu_setup_error *error;
	struct span left; /* of the line */
	unsigned line;
	bool named; /* the format */
};

__attribute__((format(printf, 2, 3))) static bool fail(struct reader *r, const char *fmt,
						       ...)
{
	va_list ap;

	r->error->line = r->line;
	va_start(ap, fmt);
	vsnprintf(r->error->text, sizeof(r->error->text), fmt, ap);
	va_end(ap);
	return false;
}

static bool device_name(struct span s)
{
	if (s.len == 0 || s.len > EMU_NAME_MAX)
		return false;
	for (size_t i = 0; i < s.len; i++)
		if (!span_digit(s.at[i]) && !(s.at[i] >= 'a' && s.at[i] <= 'z') &&
		    s.at[i] != '_')
			return false;
	return true;
}

static unsigned device_find(const struct emu_setup *c, struct span name)
{
	unsigned i = 0;

	while (i < c->devices && !span_is(name, c->device[i].name))
		i++;
	return i;
}

/* "10.0.0.1", "fd00::1". False: neither, or nobody's own. */
static bool address_take(struct span s, uint8_t raw[16])
{
	static const uint8_t none[16];
	char text[INET6_ADDRSTRLEN];

	if (s.len == 0 || s.len >= sizeof(text))
		return false;
	memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	memset(raw, 0, 16);
	if (inet_pton(AF_INET, text, raw + 12) == 1) {
		raw[10] = raw[11] = 0xff;
		return memcmp(raw + 12, none, 4) != 0;
	}
	return inet_pton(AF_INET6, text, raw) == 1 && raw[0] != 0xff &&
	       memcmp(raw, none, 16) != 0;
}

/* One more address of the device, and what it is good for: "fd00::1,dead". */
static bool gid_read(struct reader *r, struct emu_device *d, struct span value)
{
	static const char *const uses[] = {
		[EMU_GID_V1] = "v1", [EMU_GID_DEAD] = "dead", [EMU_GID_EMPTY] = "empty"};
	struct span use = value, address = span_cut(&use, ',');
	struct emu_gid *g = &d->gid[d->addresses];

	if (d->addresses == EMU_GIDS_MAX)
		return fail(r, "gid=%.*s: a device has at most %u", SPAN_SHOWN(value),
			    EMU_GIDS_MAX);
	if (!address_take(address, g->raw))
		return fail(r,
			    "gid=%.*s: it is an IPv4 or IPv6 address, as in gid=10.0.0.1 "
			    "or gid=fd00::1",
			    SPAN_SHOWN(value));
	if (address.len < value.len) {
		g->use = EMU_GID_V1;
		while (g->use <= EMU_GID_EMPTY && !span_is(use, uses[g->use]))
			g->use++;
		if (g->use > EMU_GID_EMPTY)
			return fail(r, "gid=%.*s: after a comma comes v1, dead or empty",
				    SPAN_SHOWN(value));
	}
	d->addresses++;
	return true;
}

static bool words_fail(struct reader *r, const struct emu_setup_key *key,
		       struct span value)
{
	bool three = key->words[2];

	return fail(r, "%s=%.*s: it may be %s%s%s or %s", key->name, SPAN_SHOWN(value),
		    key->words[0], three ? ", " : "", three ? key->words[1] : "",
		    key->words[three ? 2 : 1]);
}

static bool value_take(struct reader *r, const struct emu_setup_key *key,
		       struct span text, uint64_t *value)
{
	uint32_t v;

	if (key->words) {
		for (v = 0; key->words[v]; v++)
			if (span_is(text, key->words[v])) {
				*value = v;
				return true;
			}
		return words_fail(r, key, text);
	}
	if (!span_number(text, &v) || v < key->min || v > key->max)
		return fail(r, "%s=%.*s: it may be %llu to %llu", key->name,
			    SPAN_SHOWN(text), (unsigned long long)key->min,
			    (unsigned long long)key->max);
	*value = v;
	return true;
}

static bool pair_read(struct reader *r, struct emu_device *d, struct span pair)
{
	struct span value = pair, name = span_cut(&value, '=');
	uint64_t v = 0;

	if (span_is(name, "gid"))
		return gid_read(r, d, value);
	for (size_t i = 0; i < emu_setup_key_count; i++) {
		const struct emu_setup_key *key = &emu_setup_keys[i];

		if (!span_is(name, key->name))
			continue;
		if (!value_take(r, key, value, &v))
			return false;
		memcpy((char *)d + key->offset, &v, sizeof(v));
		return true;
	}
	return fail(r, "\"%.*s\" is no KEY=VALUE of a device", SPAN_SHOWN(pair));
}

static bool mtu_valid(uint64_t mtu)
{
	return (mtu & (mtu - 1)) == 0;
}

/* Bytes of the first address by which a device is told from others (its GUID ends so). */
static const uint8_t *guid_end(const struct emu_device *d)
{
	return d->gid[0].raw + 12;
}

static bool gid_used(const struct emu_setup *c, const struct emu_device *d)
{
	for (unsigned i = 0; i < c->devices; i++) {
		const struct emu_device *o = &c->device[i];

		if (memcmp(guid_end(o), guid_end(d), 4) == 0)
			return true;
		for (unsigned k = 0; k < o->addresses * d->addresses; k++)
			if (memcmp(o->gid[k / d->addresses].raw,
				   d->gid[k % d->addresses].raw, 16) == 0)
				return true;
	}
	return false;
}

/* Its GUID, so also the address that it has by itself, comes of the first one. */
static bool gids_check(struct reader *r, const struct emu_device *d)
{
	if (d->addresses == 0 || d->gid[0].use == EMU_GID_EMPTY || gid_used(r->setup, d))
		return fail(r,
			    "device %.*s: it needs a gid of its own, as in gid=10.0.0.1, "
			    "the first with another end than others' first",
			    EMU_NAME_MAX, d->name);
	for (unsigned k = 1; k < d->addresses; k++)
		for (unsigned i = 0; i < k; i++)
			if (memcmp(d->gid[i].raw, d->gid[k].raw, 16) == 0)
				return fail(r, "device %.*s has the same gid twice",
					    EMU_NAME_MAX, d->name);
	return true;
}

static bool device_read(struct reader *r)
{
	struct emu_setup *c = r->setup;
	struct span name = span_word(&r->left), pair;
	struct emu_device d = {0};

	if (!device_name(name))
		return fail(r,
			    "device \"%.*s\": a name has 1 to %d small letters, digits "
			    "and '_'",
			    SPAN_SHOWN(name), EMU_NAME_MAX);
	if (device_find(c, name) < c->devices)
		return fail(r, "device %.*s is there already", SPAN_SHOWN(name));
	if (c->none)
		return fail(r, "device %.*s, but there is none, as a line above says",
			    SPAN_SHOWN(name));
	if (c->devices == EMU_DEVICES_MAX)
		return fail(r, "device %.*s is one too many: there are at most %u",
			    SPAN_SHOWN(name), EMU_DEVICES_MAX);
	memcpy(d.name, name.at, name.len);
	for (size_t i = 0; i < emu_setup_key_count; i++)
		memcpy((char *)&d + emu_setup_keys[i].offset, &emu_setup_keys[i].initial,
		       sizeof(uint64_t));
	while ((pair = span_word(&r->left)).len > 0)
		if (!pair_read(r, &d, pair))
			return false;
	if (!mtu_valid(d.mtu))
		return fail(r, "mtu=%llu: it may be 256, 512, 1024, 2048 or 4096",
			    (unsigned long long)d.mtu);
	if (d.port > d.ports)
		return fail(r, "port=%llu: it has %llu, of which it is one",
			    (unsigned long long)d.port, (unsigned long long)d.ports);
	if (!gids_check(r, &d))
		return false;
	c->device[c->devices++] = d;
	return true;
}

/* The last fault of the device by count that was said before; NULL: none. */
static const struct emu_fault *fault_last(const struct emu_setup *c, unsigned device)
{
	for (unsigned i = c->faults; i-- > 0;)
		if (c->fault[i].device == device && c->fault[i].when == EMU_AFTER)
			return &c->fault[i];
	return NULL;
}

/* "100ms", "2s": ns. */
static bool time_take(struct span s, uint64_t *ns)
{
	uint64_t unit = 1000000000;
	uint32_t v;

	if (s.len < 2 || s.at[s.len - 1] != 's')
		return false;
	s.len--;
	if (s.at[s.len - 1] == 'm') {
		unit = 1000000;
		s.len--;
	}
	if (!span_number(s, &v) || v == 0 || v > 1000000)
		return false;
	*ns = v * unit;
	return true;
}

/* When: "1000", "each=1000", "at=2s", "every=100ms". */
static bool when_read(struct reader *r, struct span word, struct emu_fault *f)
{
	struct span value = word, name = span_cut(&value, '=');
	uint32_t v;

	f->when = span_is(name, "each")	   ? EMU_EACH
		  : span_is(name, "at")	   ? EMU_AT
		  : span_is(name, "every") ? EMU_EVERY
					   : EMU_AFTER;
	if (f->when >= EMU_AT)
		return time_take(value, &f->time) ||
		       fail(r, "\"%.*s\": a time is written as in 100ms or 2s",
			    SPAN_SHOWN(word));
	if (!span_number(f->when == EMU_EACH ? value : word, &v) ||
	    (f->when == EMU_EACH && v == 0))
		return fail(r,
			    "\"%.*s\" is no number of segments; write fault DEVICE WHEN "
			    "WHAT, and when as in 1000, each=1000, at=2s or every=100ms",
			    SPAN_SHOWN(word));
	f->time = v;
	return true;
}

/* Events that are lost: "down", "up", "both". */
static bool lost_read(struct span value, struct emu_fault *f)
{
	if (f->action != EMU_PORT_DOWN && f->action != EMU_PORT_UP)
		return false;
	f->lost = span_is(value, "down")   ? EMU_LOST_DOWN
		  : span_is(value, "up")   ? EMU_LOST_UP
		  : span_is(value, "both") ? EMU_LOST_DOWN | EMU_LOST_UP
					   : 0;
	return f->lost != 0;
}

/* What may follow: "for=1s", "for=20", "host=1", "lost=up". */
static bool rest_read(struct reader *r, struct emu_fault *f)
{
	struct span word;
	uint32_t v;

	while ((word = span_word(&r->left)).len > 0) {
		struct span value = word, name = span_cut(&value, '=');

		if (span_is(name, "host") && span_number(value, &v) && v > 0)
			f->host = v;
		else if (span_is(name, "for") && f->action == EMU_STALL_QP &&
			 f->when <= EMU_EACH && span_number(value, &v) && v > 0)
			f->lasts_segments = v;
		else if (span_is(name, "lost") && lost_read(value, f))
			continue;
		else if (!span_is(name, "for") ||
			 (f->action != EMU_STALL_QP && f->action != EMU_PORT_DOWN) ||
			 !time_take(value, &f->lasts))
			return fail(
				r,
				"\"%.*s\": it may be host=NUMBER, of port-down and "
				"stall-qp for=TIME, of stall-qp by count for=SEGMENTS, "
				"of ports lost=down, up or both",
				SPAN_SHOWN(word));
	}
	return f->action != EMU_STALL_QP || f->lasts || f->lasts_segments ||
	       fail(r, "stall-qp needs to be told for how long, as in for=100ms");
}

static bool action_fail(struct reader *r, struct span word)
{
	size_t at;

	fail(r, "\"%.*s\" is no fault; they are", SPAN_SHOWN(word));
	at = strlen(r->error->text);
	for (unsigned i = 0; i < EMU_ACTIONS && at < sizeof(r->error->text); i++)
		at += (size_t)snprintf(r->error->text + at, sizeof(r->error->text) - at,
				       "%s %s", i ? "," : "", action_name[i]);
	return false;
}

static bool fault_read(struct reader *r)
{
	struct emu_setup *c = r->setup;
	struct span name = span_word(&r->left), when = span_word(&r->left);
	struct span what = span_word(&r->left);
	struct emu_fault f = {.device = device_find(c, name)};
	const struct emu_fault *last = fault_last(c, f.device);

	if (f.device == c->devices)
		return fail(r, "device \"%.*s\" is not known; say it before its faults",
			    SPAN_SHOWN(name));
	if (!when_read(r, when, &f))
		return false;
	while (f.action < EMU_ACTIONS && !span_is(what, action_name[f.action]))
		f.action++;
	if (f.action == EMU_ACTIONS)
		return action_fail(r, what);
	if (!rest_read(r, &f))
		return false;
	if (f.when == EMU_AFTER && last && last->time > f.time)
		return fail(
			r,
			"a fault of %.*s after %llu segments: one after %llu was said "
			"before; write them in order",
			SPAN_SHOWN(name), (unsigned long long)f.time,
			(unsigned long long)last->time);
	if (c->faults == EMU_FAULTS_MAX)
		return fail(r, "more than %u faults", EMU_FAULTS_MAX);
	c->fault[c->faults++] = f;
	return true;
}

static bool seed_read(struct reader *r)
{
	struct span value = span_word(&r->left), rest = span_word(&r->left);
	uint32_t seed;

	if (!span_number(value, &seed) || rest.len > 0)
		return fail(r, "seed \"%.*s\": it is a number of up to 9 digits",
			    SPAN_SHOWN(rest.len > 0 ? rest : value));
	r->setup->seed = seed;
	return true;
}

static bool none_read(struct reader *r)
{
	struct span rest = span_word(&r->left);

	if (rest.len > 0)
		return fail(r, "\"%.*s\": nothing comes after none", SPAN_SHOWN(rest));
	if (r->setup->devices > 0)
		return fail(r, "none: there is device %s", r->setup->device[0].name);
	r->setup->none = true;
	return true;
}

static bool format_read(struct reader *r, struct span first)
{
	struct span version = span_word(&r->left), rest = span_word(&r->left);

	r->named = span_is(first, FORMAT) && span_is(version, "1") && rest.len == 0;
	return r->named ||
	       fail(r, "\"%.*s\": the first line is \"" FORMAT " 1\"", SPAN_SHOWN(first));
}

static bool line_read(struct reader *r)
{
	static const struct {
		const char *name;
		bool (*read)(struct reader *r);
	} kinds[] = {{"seed", seed_read},
		     {"none", none_read},
		     {"device", device_read},
		     {"fault", fault_read}};
	struct span first = span_word(&r->left);

	if (first.len == 0)
		return true;
	if (!r->named)
		return format_read(r, first);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (span_is(first, kinds[i].name))
			return kinds[i].read(r);
	return fail(r, "\"%.*s\": a line begins with seed, none, device or fault",
		    SPAN_SHOWN(first));
}

bool emu_setup_parse(const char *text, size_t len, struct emu_setup *setup,
		     struct emu_setup_error *error)
{
	struct reader r = {.setup = setup, .error = error};
	struct span all = {text, len};

	memset(setup, 0, sizeof(*setup));
	memset(error, 0, sizeof(*error));
	while (all.len > 0) {
		r.line++;
		r.left = span_line(&all);
		if (!line_read(&r))
			return false;
	}
	r.line = 0;
	if (setup->devices == 0 && !setup->none)
		return fail(&r, "it has no device; write \"" FORMAT
				" 1\", then device NAME gid=ADDRESS, or none");
	return true;
}

const char *emu_action_name(enum emu_action action)
{
	return action < EMU_ACTIONS ? action_name[action] : "?";
}
