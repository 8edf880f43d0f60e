/* SPDX-License-Identifier: BSD-2-Clause */
/* See ctl.h. */
#include "config.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "coll/exec/ctl.h"
#include "coll/exec/mem.h"
#include "coll/exec/name.h"
#include "weft/weft.h"

#define CTL_MAGIC UINT32_C(0x57464334) /* "WFC4": a layout of its own gets a new one */

struct ctl_wire_header {
	uint32_t magic;
	uint8_t kind;
	uint8_t entries;
	uint8_t handles;
	uint8_t pair;
	int32_t src;
	uint32_t comm;
	uint32_t call;
	uint32_t pad2;
	uint64_t sig;
	uint64_t job;
};
static_assert(sizeof(struct ctl_wire_header) == 40, "wire format");

struct ctl_wire_handle {
	uint16_t id;
	uint16_t pad;
	uint32_t incarnation;
	uint64_t key;
	uint64_t base;
};
static_assert(sizeof(struct ctl_wire_handle) == 24, "wire format");

struct ctl_wire_entry {
	uint32_t k;
	uint32_t recv;
	uint16_t handle;
	uint8_t choice;
	uint8_t more;
	uint32_t incarnation;
	uint64_t offset;
	uint64_t length;
};
static_assert(sizeof(struct ctl_wire_entry) == 32, "wire format");

struct ctl_wire_fail {
	uint32_t result;
	int32_t culprit;
	uint64_t msg_bytes;
	char text[CTL_TEXT_MAX];
};
static_assert(sizeof(struct ctl_wire_fail) == 16 + CTL_TEXT_MAX, "wire format");

struct ctl_wire_call {
	uint64_t count;
	int32_t root;
	uint8_t coll;
	uint8_t type;
	uint8_t op;
	uint8_t algorithm;
};
static_assert(sizeof(struct ctl_wire_call) == 16, "wire format");

struct ctl_wire_status {
	struct ctl_wire_call call;
	int32_t waits_for;
	uint32_t place_k;
	uint64_t place_bytes;
	uint8_t place;
	uint8_t pad[7];
};
static_assert(sizeof(struct ctl_wire_status) == 40, "wire format");

struct ctl_wire_elsewhere {
	struct ctl_wire_call id;
	uint32_t comm;
	uint32_t call;
	int32_t waits_for;
	uint32_t pad;
};
static_assert(sizeof(struct ctl_wire_elsewhere) == 32, "wire format");

struct ctl_wire_forgotten {
	uint32_t since;
	uint32_t pad;
};
static_assert(sizeof(struct ctl_wire_forgotten) == 8, "wire format");

struct ctl_wire_win {
	uint32_t index;
	uint32_t pad;
	uint64_t offset;
	uint64_t length;
	uint64_t value;
};
static_assert(sizeof(struct ctl_wire_win) == 32, "wire format");

/* Then the list, if there is one, as long as its last member. */
struct ctl_wire_agree {
	uint64_t ballot;
	uint64_t taken;
	uint32_t number;
	uint16_t bytes; /* of the list */
	uint8_t phase;
	uint8_t pad;
};
static_assert(sizeof(struct ctl_wire_agree) == 24, "wire format");
static_assert(sizeof(struct ctl_wire_header) + sizeof(struct ctl_wire_agree) +
			      AGREE_LIST_BYTES <=
		      CTL_MAX,
	      "a list of all members fits");

static_assert(sizeof(struct ctl_wire_header) +
			      CTL_HANDLE_MAX * sizeof(struct ctl_wire_handle) +
			      CTL_ENTRY_MAX * sizeof(struct ctl_wire_entry) <=
		      CTL_MAX,
	      "a full READY fits");
static_assert(sizeof(struct ctl_wire_header) +
				      CTL_PAST_MAX * sizeof(struct ctl_wire_call) <=
			      CTL_MAX &&
		      sizeof(struct ctl_wire_header) + sizeof(struct ctl_wire_fail) <=
			      CTL_MAX,
	      "a full PAST and a FAIL fit");

static size_t ctl_encode_ready(const struct ctl_ready *ready, char *to)
{
	char *at = to;

	for (int i = 0; i < ready->handles; i++, at += sizeof(struct ctl_wire_handle)) {
		const struct ctl_handle *h = &ready->handle[i];
		struct ctl_wire_handle w = {.id = htole16(h->id),
					    .incarnation = htole32(h->incarnation),
					    .key = htole64(h->key),
					    .base = htole64(h->base)};

		memcpy(at, &w, sizeof(w));
	}
	for (int i = 0; i < ready->entries; i++, at += sizeof(struct ctl_wire_entry)) {
		const struct ctl_entry *e = &ready->entry[i];
		struct ctl_wire_entry w = {.k = htole32(e->k),
					   .recv = htole32(e->recv),
					   .handle = htole16(e->handle),
					   .choice = e->choice,
					   .more = (uint8_t)(e->more | e->stays << 1),
					   .incarnation = htole32(e->incarnation),
					   .offset = htole64(e->offset),
					   .length = htole64(e->length)};

		memcpy(at, &w, sizeof(w));
	}
	return (size_t)(at - to);
}

static struct ctl_wire_call ctl_encode_call(const struct sig_call *c)
{
	return (struct ctl_wire_call){.count = htole64(c->count),
				      .root = (int32_t)htole32((uint32_t)c->root),
				      .coll = c->coll,
				      .type = c->type,
				      .op = c->op,
				      .algorithm = c->algorithm};
}

static size_t ctl_encode_elsewhere(const struct ctl_elsewhere *e, char *to)
{
	struct ctl_wire_elsewhere w = {.id = ctl_encode_call(&e->id),
				       .comm = htole32(e->comm),
				       .call = htole32(e->call),
				       .waits_for =
					       (int32_t)htole32((uint32_t)e->waits_for)};

	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static size_t ctl_encode_status(const struct ctl_status *status, char *to)
{
	struct ctl_wire_status w = {.call = ctl_encode_call(&status->call),
				    .waits_for =
					    (int32_t)htole32((uint32_t)status->waits_for),
				    .place_k = htole32(status->place_k),
				    .place_bytes = htole64(status->place_bytes),
				    .place = status->place};

	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static size_t ctl_encode_past(const struct ctl_past *past, char *to)
{
	for (int i = 0; i < past->entries; i++) {
		struct ctl_wire_call w = ctl_encode_call(&past->call[i]);

		memcpy(to + (size_t)i * sizeof(w), &w, sizeof(w));
	}
	return past->entries * sizeof(struct ctl_wire_call);
}

static size_t ctl_encode_fail(const struct ctl_fail *fail, char *to)
{
	struct ctl_wire_fail w = {.result = htole32(fail->result),
				  .culprit = (int32_t)htole32((uint32_t)fail->culprit),
				  .msg_bytes = htole64(fail->msg_bytes)};

	memcpy(w.text, fail->text, sizeof(w.text));
	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static size_t ctl_encode_win(const struct ctl_win *win, char *to)
{
	struct ctl_wire_win w = {.index = htole32(win->index),
				 .offset = htole64(win->offset),
				 .length = htole64(win->length),
				 .value = htole64(win->value)};

	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static size_t ctl_encode_forgotten(const struct ctl_forgotten *forgotten, char *to)
{
	struct ctl_wire_forgotten w = {.since = htole32(forgotten->since)};

	memcpy(to, &w, sizeof(w));
	return sizeof(w);
}

static size_t ctl_encode_agree(const struct agree_msg *agree, char *to)
{
	struct ctl_wire_agree w = {.ballot = htole64(agree->ballot),
				   .taken = htole64(agree->taken),
				   .number = htole32(agree->value.number),
				   .phase = agree->phase};
	size_t bytes = agree_has_list(agree) ? AGREE_LIST_BYTES : 0;

	while (bytes && !agree->value.list[bytes - 1])
		bytes--;
	w.bytes = htole16((uint16_t)bytes);
	memcpy(to, &w, sizeof(w));
	memcpy(to + sizeof(w), agree->value.list, bytes);
	return sizeof(w) + bytes;
}

size_t ctl_encode(const struct ctl_msg *msg, void *buf)
{
	const bool ready = msg->kind == CTL_READY;
	struct ctl_wire_header w = {.magic = htole32(CTL_MAGIC),
				    .kind = (uint8_t)msg->kind,
				    .entries = ready ? msg->ready.entries
					       : msg->kind == CTL_PAST ? msg->past.entries
								       : 0,
				    .handles = ready ? msg->ready.handles : 0,
				    .pair = msg->pair,
				    .src = (int32_t)htole32((uint32_t)msg->src),
				    .comm = htole32(msg->comm),
				    .call = htole32(msg->call),
				    .sig = htole64(msg->sig),
				    .job = htole64(msg->job)};
	char *at = (char *)buf + sizeof(w);
	size_t body = 0;

	memcpy(buf, &w, sizeof(w));
	switch (msg->kind) {
	case CTL_READY:
		body = ctl_encode_ready(&msg->ready, at);
		break;
	case CTL_FAIL:
	case CTL_REPORT:
	case CTL_VERDICT:
	case CTL_REVOKE:
		body = ctl_encode_fail(&msg->fail, at);
		break;
	case CTL_PROBE:
	case CTL_STATUS:
		body = ctl_encode_status(&msg->status, at);
		break;
	case CTL_PAST:
		body = ctl_encode_past(&msg->past, at);
		break;
	case CTL_WIN_SIGNAL:
	case CTL_WIN_PUT:
	case CTL_WIN_GET:
		body = ctl_encode_win(&msg->win, at);
		break;
	case CTL_ELSEWHERE:
		body = ctl_encode_elsewhere(&msg->elsewhere, at);
		break;
	case CTL_AGREE:
		body = ctl_encode_agree(&msg->agree, at);
		break;
	case CTL_FORGOTTEN:
		body = ctl_encode_forgotten(&msg->forgotten, at);
		break;
	case CTL_REVOKED:
		break;
	}
	return sizeof(w) + body;
}

static bool ctl_decode_entries(const char *at, struct ctl_ready *ready)
{
	for (int i = 0; i < ready->entries; i++, at += sizeof(struct ctl_wire_entry)) {
		struct ctl_wire_entry w;
		struct ctl_entry *e = &ready->entry[i];

		memcpy(&w, at, sizeof(w));
		*e = (struct ctl_entry){.k = le32toh(w.k),
					.recv = le32toh(w.recv),
					.handle = le16toh(w.handle),
					.choice = w.choice,
					.more = w.more & 1,
					.stays = w.more >> 1,
					.incarnation = le32toh(w.incarnation),
					.offset = le64toh(w.offset),
					.length = le64toh(w.length)};
		if (e->recv > NAME_INDEX_MASK || e->choice > CTL_CHOICE_PUT ||
		    e->handle >= MEM_ENTRIES_MAX || w.more > 3)
			return false;
		if (i > 0 && ready->entry[i - 1].more && e->k != ready->entry[i - 1].k)
			return false;
	}
	return !ready->entry[ready->entries - 1].more;
}

static bool ctl_decode_ready(const char *at, size_t len, struct ctl_ready *ready)
{
	if (ready->handles > CTL_HANDLE_MAX || ready->entries == 0 ||
	    ready->entries > CTL_ENTRY_MAX ||
	    len != ready->handles * sizeof(struct ctl_wire_handle) +
			    ready->entries * sizeof(struct ctl_wire_entry))
		return false;
	for (int i = 0; i < ready->handles; i++, at += sizeof(struct ctl_wire_handle)) {
		struct ctl_wire_handle w;

		memcpy(&w, at, sizeof(w));
		ready->handle[i] =
			(struct ctl_handle){.id = le16toh(w.id),
					    .incarnation = le32toh(w.incarnation),
					    .key = le64toh(w.key),
					    .base = le64toh(w.base)};
		if (ready->handle[i].id >= MEM_ENTRIES_MAX)
			return false;
	}
	return ctl_decode_entries(at, ready);
}

static bool ctl_decode_fail(const char *at, size_t len, int32_t size,
			    struct ctl_fail *fail)
{
	struct ctl_wire_fail w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	fail->result = le32toh(w.result);
	fail->culprit = (int32_t)le32toh((uint32_t)w.culprit);
	fail->msg_bytes = le64toh(w.msg_bytes);
	memcpy(fail->text, w.text, sizeof(fail->text));
	fail->text[sizeof(fail->text) - 1] = '\0';
	return fail->result > WEFT_SUCCESS && fail->result < WEFT_RESULT_COUNT &&
	       fail->culprit >= -1 && fail->culprit < size;
}

static struct sig_call ctl_decode_call(const struct ctl_wire_call *w)
{
	return (struct sig_call){.count = le64toh(w->count),
				 .root = (int32_t)le32toh((uint32_t)w->root),
				 .coll = w->coll,
				 .type = w->type,
				 .op = w->op,
				 .algorithm = w->algorithm};
}

static bool ctl_decode_past(const char *at, size_t len, struct ctl_past *past)
{
	if (past->entries > CTL_PAST_MAX ||
	    len != past->entries * sizeof(struct ctl_wire_call))
		return false;
	for (int i = 0; i < past->entries; i++, at += sizeof(struct ctl_wire_call)) {
		struct ctl_wire_call w;

		memcpy(&w, at, sizeof(w));
		past->call[i] = ctl_decode_call(&w);
	}
	return true;
}

static bool ctl_decode_status(const char *at, size_t len, int32_t size,
			      struct ctl_status *status)
{
	struct ctl_wire_status w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	status->call = ctl_decode_call(&w.call);
	status->waits_for = (int32_t)le32toh((uint32_t)w.waits_for);
	if (w.place > 1)
		return false;
	status->place = w.place;
	status->place_k = le32toh(w.place_k);
	status->place_bytes = le64toh(w.place_bytes);
	return status->waits_for >= -1 && status->waits_for < size;
}

static bool ctl_decode_elsewhere(const char *at, size_t len, int32_t size,
				 struct ctl_elsewhere *e)
{
	struct ctl_wire_elsewhere w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	*e = (struct ctl_elsewhere){.id = ctl_decode_call(&w.id),
				    .comm = le32toh(w.comm),
				    .call = le32toh(w.call),
				    .waits_for = (int32_t)le32toh((uint32_t)w.waits_for)};
	return e->comm <= NAME_COMM_MAX && e->waits_for >= -1 && e->waits_for < size;
}

static bool ctl_decode_win(const char *at, size_t len, struct ctl_win *win)
{
	struct ctl_wire_win w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	*win = (struct ctl_win){.index = le32toh(w.index),
				.offset = le64toh(w.offset),
				.length = le64toh(w.length),
				.value = le64toh(w.value)};
	return true;
}

static bool ctl_decode_forgotten(const char *at, size_t len,
				 struct ctl_forgotten *forgotten)
{
	struct ctl_wire_forgotten w;

	if (len != sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	*forgotten = (struct ctl_forgotten){.since = le32toh(w.since)};
	return true;
}

static bool ctl_decode_agree(const char *at, size_t len, struct agree_msg *agree)
{
	struct ctl_wire_agree w;
	size_t bytes;

	if (len < sizeof(w))
		return false;
	memcpy(&w, at, sizeof(w));
	bytes = le16toh(w.bytes);
	if (bytes > AGREE_LIST_BYTES || len != sizeof(w) + bytes)
		return false;
	memset(agree, 0, sizeof(*agree));
	agree->phase = w.phase;
	agree->ballot = le64toh(w.ballot);
	agree->taken = le64toh(w.taken);
	agree->value.number = le32toh(w.number);
	memcpy(agree->value.list, at + sizeof(w), bytes);
	/* One way to say it: no list where there is none, and no byte too many. */
	return agree->phase >= AGREE_JOIN && agree->phase < AGREE_PHASES &&
	       agree->value.number <= NAME_COMM_MAX + 1 &&
	       (agree_has_list(agree) || !bytes) &&
	       (!bytes || agree->value.list[bytes - 1]) &&
	       agree->ballot <= AGREE_BALLOT_MAX && agree->taken <= AGREE_BALLOT_MAX;
}

bool ctl_job(const void *buf, size_t len, uint64_t *job)
{
	struct ctl_wire_header w;

	if (len < sizeof(w) || len > CTL_MAX)
		return false;
	memcpy(&w, buf, sizeof(w));
	*job = le64toh(w.job);
	return le32toh(w.magic) == CTL_MAGIC;
}

bool ctl_decode(const void *buf, size_t len, int32_t size, struct ctl_msg *msg)
{
	const char *at = (const char *)buf + sizeof(struct ctl_wire_header);
	struct ctl_wire_header w;

	if (len < sizeof(w) || len > CTL_MAX)
		return false;
	memcpy(&w, buf, sizeof(w));
	len -= sizeof(w);
	msg->kind = (enum ctl_kind)w.kind;
	msg->src = (int32_t)le32toh((uint32_t)w.src);
	msg->comm = le32toh(w.comm);
	msg->call = le32toh(w.call);
	msg->sig = le64toh(w.sig);
	msg->job = le64toh(w.job);
	if (le32toh(w.magic) != CTL_MAGIC || msg->src < 0 || msg->src >= size ||
	    msg->comm > NAME_COMM_MAX || w.pair > 1)
		return false;
	msg->pair = w.pair;
	if (msg->pair && w.kind != CTL_FAIL && w.kind != CTL_PROBE &&
	    w.kind != CTL_STATUS && w.kind != CTL_FORGOTTEN)
		return false;
	switch (w.kind) {
	case CTL_READY:
		msg->ready.entries = w.entries;
		msg->ready.handles = w.handles;
		return ctl_decode_ready(at, len, &msg->ready);
	case CTL_FAIL:
	case CTL_REPORT:
	case CTL_VERDICT:
	case CTL_REVOKE:
		return ctl_decode_fail(at, len, size, &msg->fail);
	case CTL_REVOKED:
		return len == 0;
	case CTL_PROBE:
	case CTL_STATUS:
		return ctl_decode_status(at, len, size, &msg->status);
	case CTL_PAST:
		msg->past.entries = w.entries;
		return ctl_decode_past(at, len, &msg->past);
	case CTL_WIN_SIGNAL:
	case CTL_WIN_PUT:
	case CTL_WIN_GET:
		return ctl_decode_win(at, len, &msg->win);
	case CTL_ELSEWHERE:
		return ctl_decode_elsewhere(at, len, size, &msg->elsewhere);
	case CTL_FORGOTTEN:
		return ctl_decode_forgotten(at, len, &msg->forgotten);
	case CTL_AGREE:
		return ctl_decode_agree(at, len, &msg->agree);
	}
	return false;
}
