/* SPDX-License-Identifier: BSD-2-Clause */
/* The control messages' encoder and the validator; one row for each kind. */
#include "config.h"

#include "prov/dqplb/msg.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct msg_kind {
	const char *name;
	size_t least; /* bytes before what is counted */
	bool (*decode)(const void *bytes, size_t len, struct dqplb_msg *m);
	size_t (*encode)(void *bytes, size_t room, const struct dqplb_msg *m);
};

static bool decode_runs(const char *at, size_t len, struct dqplb_msg *m)
{
	if (m->runs > DQPLB_RUNS_MAX || len != m->runs * sizeof(struct dqplb_msg_run))
		return false;
	for (uint32_t i = 0; i < m->runs; i++) {
		struct dqplb_msg_run run;

		memcpy(&run, at + i * sizeof(run), sizeof(run));
		m->run[i].first = le32_get(run.first);
		m->run[i].count = le32_get(run.count);
		if (m->run[i].first > DQPLB_SEQ_MASK || m->run[i].count == 0 ||
		    m->run[i].count > DQPLB_WINDOW_MAX)
			return false;
	}
	return true;
}

static char *encode_runs(char *at, const struct dqplb_msg *m)
{
	for (uint32_t i = 0; i < m->runs; i++) {
		struct dqplb_msg_run run = {le32_of(m->run[i].first & DQPLB_SEQ_MASK),
					    le32_of(m->run[i].count)};

		memcpy(at, &run, sizeof(run));
		at += sizeof(run);
	}
	return at;
}

static struct dqplb_msg_head head_of(const struct dqplb_msg *m)
{
	return (struct dqplb_msg_head){.kind = m->kind,
				       .gen = m->gen,
				       .flags = m->flags,
				       .number = le32_of(m->number & DQPLB_SEQ_MASK)};
}

static bool decode_record(const void *bytes, size_t len, struct dqplb_msg *m)
{
	struct dqplb_msg_record h;

	memcpy(&h, bytes, sizeof(h));
	m->data = le64_get(h.data);
	m->len = le64_get(h.len);
	m->op = le32_get(h.op);
	m->runs = le32_get(h.runs);
	return (m->flags & ~DQPLB_MSG_F_ORDERED) == 0 && m->len <= DQPLB_LEN_MAX &&
	       decode_runs((const char *)bytes + sizeof(h), len - sizeof(h), m);
}

static size_t encode_record(void *bytes, size_t room, const struct dqplb_msg *m)
{
	struct dqplb_msg_record h = {.head = head_of(m),
				     .data = le64_of(m->data),
				     .len = le64_of(m->len),
				     .op = le32_of(m->op),
				     .runs = le32_of(m->runs)};

	if (room < sizeof(h) + m->runs * sizeof(struct dqplb_msg_run))
		return 0;
	memcpy(bytes, &h, sizeof(h));
	return (size_t)(encode_runs((char *)bytes + sizeof(h), m) - (char *)bytes);
}

static bool decode_void(const void *bytes, size_t len, struct dqplb_msg *m)
{
	struct dqplb_msg_void h;

	memcpy(&h, bytes, sizeof(h));
	m->runs = le32_get(h.runs);
	return m->flags == 0 && m->number == 0 && h.zero.v == 0 && m->runs > 0 &&
	       decode_runs((const char *)bytes + sizeof(h), len - sizeof(h), m);
}

static size_t encode_void(void *bytes, size_t room, const struct dqplb_msg *m)
{
	struct dqplb_msg_void h = {.head = head_of(m), .runs = le32_of(m->runs)};

	if (room < sizeof(h) + m->runs * sizeof(struct dqplb_msg_run))
		return 0;
	memcpy(bytes, &h, sizeof(h));
	return (size_t)(encode_runs((char *)bytes + sizeof(h), m) - (char *)bytes);
}

/* Each lane and each queue is named once, in ascending order. */
static const char *decode_lanes(const char *at, struct dqplb_msg *m)
{
	for (uint32_t i = 0; i < m->lanes; i++) {
		struct dqplb_msg_lane lane;

		memcpy(&lane, at, sizeof(lane));
		at += sizeof(lane);
		m->lane[i].lane = le32_get(lane.lane);
		m->lane[i].incarnation = le32_get(lane.incarnation);
		if (m->lane[i].lane >= DQPLB_LANES_MAX ||
		    (i > 0 && m->lane[i].lane <= m->lane[i - 1].lane))
			return NULL;
	}
	return at;
}

static const char *decode_grants(const char *at, struct dqplb_msg *m)
{
	for (uint32_t i = 0; i < m->grants; i++) {
		struct dqplb_msg_grant grant;

		memcpy(&grant, at, sizeof(grant));
		at += sizeof(grant);
		m->grant[i].queue = le32_get(grant.queue);
		m->grant[i].granted = le32_get(grant.granted);
		if (m->grant[i].queue >= DQPLB_LANES_MAX ||
		    (i > 0 && m->grant[i].queue <= m->grant[i - 1].queue))
			return NULL;
	}
	return at;
}

static bool decode_ack(const void *bytes, size_t len, struct dqplb_msg *m)
{
	struct dqplb_msg_ack h;
	const char *at = (const char *)bytes + sizeof(h);

	memcpy(&h, bytes, sizeof(h));
	m->lanes = h.lanes;
	m->grants = h.grants;
	m->words = le16_get(h.words);
	if (m->flags != 0 || h.zero.v != 0 || m->words > DQPLB_WORDS_MAX ||
	    m->grants > DQPLB_LANES_MAX ||
	    m->lanes > (m->kind == DQPLB_MSG_REPORT ? DQPLB_LANES_MAX : 0) ||
	    len != sizeof(h) + m->lanes * sizeof(struct dqplb_msg_lane) +
			    m->grants * sizeof(struct dqplb_msg_grant) +
			    m->words * sizeof(struct le64))
		return false;
	at = decode_lanes(at, m);
	at = at ? decode_grants(at, m) : NULL;
	for (uint32_t i = 0; at && i < m->words; i++) {
		struct le64 word;

		memcpy(&word, at + i * sizeof(word), sizeof(word));
		m->word[i] = le64_get(word);
	}
	return at != NULL;
}

static size_t encode_ack(void *bytes, size_t room, const struct dqplb_msg *m)
{
	struct dqplb_msg_ack h = {.head = head_of(m),
				  .lanes = (uint8_t)m->lanes,
				  .grants = (uint8_t)m->grants,
				  .words = le16_of((uint16_t)m->words)};
	char *at = (char *)bytes + sizeof(h);

	if (room < sizeof(h) + (m->lanes + m->grants + m->words) * 8)
		return 0;
	memcpy(bytes, &h, sizeof(h));
	for (uint32_t i = 0; i < m->lanes; i++, at += sizeof(struct dqplb_msg_lane)) {
		struct dqplb_msg_lane lane = {le32_of(m->lane[i].lane),
					      le32_of(m->lane[i].incarnation)};

		memcpy(at, &lane, sizeof(lane));
	}
	for (uint32_t i = 0; i < m->grants; i++, at += sizeof(struct dqplb_msg_grant)) {
		struct dqplb_msg_grant grant = {le32_of(m->grant[i].queue),
						le32_of(m->grant[i].granted)};

		memcpy(at, &grant, sizeof(grant));
	}
	for (uint32_t i = 0; i < m->words; i++, at += sizeof(struct le64)) {
		struct le64 word = le64_of(m->word[i]);

		memcpy(at, &word, sizeof(word));
	}
	return (size_t)(at - (char *)bytes);
}

static const struct msg_kind kinds[DQPLB_MSG_KINDS] = {
	[DQPLB_MSG_RECORD] = {"record", sizeof(struct dqplb_msg_record), decode_record,
			      encode_record},
	[DQPLB_MSG_VOID] = {"void", sizeof(struct dqplb_msg_void), decode_void,
			    encode_void},
	[DQPLB_MSG_ACK] = {"ack", sizeof(struct dqplb_msg_ack), decode_ack, encode_ack},
	[DQPLB_MSG_REPORT] = {"report", sizeof(struct dqplb_msg_ack), decode_ack,
			      encode_ack},
};

int dqplb_msg_parse(const void *bytes, size_t len, struct dqplb_msg *m)
{
	struct dqplb_msg_head h;

	if (len < sizeof(h))
		return -EINVAL;
	memcpy(&h, bytes, sizeof(h));
	m->kind = h.kind;
	m->gen = h.gen;
	m->flags = h.flags;
	m->number = le32_get(h.number);
	if (h.kind == 0 || h.kind >= DQPLB_MSG_KINDS || h.zero != 0 ||
	    h.gen > DQPLB_GEN_MASK || m->number > DQPLB_SEQ_MASK ||
	    len < kinds[h.kind].least)
		return -EINVAL;
	return kinds[h.kind].decode(bytes, len, m) ? 0 : -EINVAL;
}

size_t dqplb_msg_put(void *bytes, size_t room, const struct dqplb_msg *m)
{
	return kinds[m->kind].encode(bytes, room, m);
}

const char *dqplb_msg_kind_name(uint8_t kind)
{
	return kind > 0 && kind < DQPLB_MSG_KINDS ? kinds[kind].name : "?";
}
