/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side: which message a receive gets (source, tag, mask), what happens to
 * one that is too short or is cancelled, buffers for many messages, and sources.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <string.h>

#define LONG_SIZE ((1u << 20) + 3)

static void send_one(struct side *s, fi_addr_t to, uint64_t tag, const void *buf,
		     size_t len)
{
	while (node_again(s, fi_tsend(s->node.ep, buf, len, NULL, to, tag, NULL),
			  "fi_tsend"))
		;
}

static void recv_one(struct side *s, fi_addr_t from, uint64_t tag, uint64_t ignore,
		     void *buf, size_t len)
{
	while (node_again(s, fi_trecv(s->node.ep, buf, len, NULL, from, tag, ignore, buf),
			  "fi_trecv"))
		;
}

/* Waits for the receive into buf; skips completions of sends. */
static void recv_expect(struct side *s, struct done *d, void *buf)
{
	do {
		if (!node_next(s, d, WAIT_MS))
			side_die(s, "no completion");
		if (d->err)
			side_die(s, "error completion: %s", fi_strerror(d->err));
	} while (d->e.flags & FI_SEND);
	side_check_u64(s, d->e.flags, FI_TAGGED | FI_RECV, "flags");
	side_check(s, d->e.op_context == buf, "a receive completed that shouldn't have");
}

/* ---- matching */

static const struct want want_source = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE |
						FI_DIRECTED_RECV};

/* Role 1 gets messages of the same tag from role 0 and from itself. */
static void directed_peer(struct side *s)
{
	uint8_t out[8];

	node_open(s, &want_source);
	for (uint32_t i = 0; i < 3; i++) {
		mem_fill(out, sizeof(out), i);
		send_one(s, s->node.peer, 7, out, sizeof(out));
		node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
	}
	side_meet(s);
	side_meet(s);
	node_close(s, &s->node);
}

static void directed_self(struct side *s)
{
	uint8_t own[8], in[4][8];
	struct done d;

	node_open(s, &want_source);
	mem_fill(own, sizeof(own), 100);
	/* Posted first, for messages of our own: the peer's must pass it by. */
	recv_one(s, s->node.self, 7, 0, in[0], 8);
	recv_one(s, s->node.peer, 7, 0, in[1], 8);
	recv_expect(s, &d, in[1]);
	side_check_u64(s, d.src, s->node.peer, "source");
	mem_check(s, in[1], 8, 0, "the peer's first message");
	side_meet(s);
	send_one(s, s->node.self, 7, own, sizeof(own));
	recv_expect(s, &d, in[0]);
	side_check_u64(s, d.src, s->node.self, "source");
	mem_check(s, in[0], 8, 100, "our own message");
	/* Any source: what is left, in its order. */
	for (uint32_t i = 1; i < 3; i++) {
		recv_one(s, FI_ADDR_UNSPEC, 7, 0, in[i + 1], 8);
		recv_expect(s, &d, in[i + 1]);
		side_check_u64(s, d.src, s->node.peer, "source");
		mem_check(s, in[i + 1], 8, i, "the peer's next message");
	}
	side_meet(s);
	node_close(s, &s->node);
}

static const uint64_t tags_sent[] = {0x2f, 0x1f, 0x10, 0xff00000000000001, 0x30};

static void tags_sender(struct side *s)
{
	uint8_t out[64];

	node_open(s, &(struct want){0});
	for (int round = 0; round < 2; round++) {
		side_meet(s);
		for (uint32_t i = 0; i < ARRAY_LEN(tags_sent); i++) {
			mem_fill(out, sizeof(out), i);
			send_one(s, s->node.peer, tags_sent[i], out, sizeof(out));
			node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
		}
		side_meet(s);
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* In the order of the posts; `gets` says which of the messages is the first that fits. */
static const struct {
	uint64_t tag, ignore;
	uint32_t gets;
} tags_posted[] = {
	{0x15, 0x0f, 1},       /* 1f and 10 fit: the earlier */
	{0x10, 0, 2},	       /* exactly */
	{1, 0xffull << 56, 3}, /* high bits ignored */
	{0, UINT64_MAX, 0},    /* anything: the earliest that is left */
	{0x30, 0, 4},
};

static void tags_receiver(struct side *s)
{
	uint8_t in[ARRAY_LEN(tags_posted)][64];
	struct done d;

	node_open(s, &(struct want){0});
	for (int round = 0; round < 2; round++) {
		memset(in, 0, sizeof(in));
		if (round == 1) { /* unexpected: all are there before the first receive */
			side_meet(s);
			side_meet(s);
			node_quiet(s, 20);
		}
		for (size_t i = 0; i < ARRAY_LEN(tags_posted); i++)
			recv_one(s, FI_ADDR_UNSPEC, tags_posted[i].tag,
				 tags_posted[i].ignore, in[i], 64);
		if (round == 0) {
			side_meet(s);
			side_meet(s);
		}
		for (size_t n = 0; n < ARRAY_LEN(tags_posted); n++) {
			if (!node_next(s, &d, WAIT_MS))
				side_die(s, "no completion");
			for (size_t i = 0; i < ARRAY_LEN(tags_posted); i++) {
				if (d.e.op_context == in[i])
					side_check_u64(s, d.e.tag,
						       tags_sent[tags_posted[i].gets],
						       "tag of a receive");
			}
		}
		for (size_t i = 0; i < ARRAY_LEN(tags_posted); i++)
			mem_check(s, in[i], 64, tags_posted[i].gets, "message by tag");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* Tagged and untagged ones never meet. */
static void kinds_sender(struct side *s)
{
	uint8_t out[8];

	node_open(s, &(struct want){0});
	mem_fill(out, 8, 1);
	while (node_again(s, fi_send(s->node.ep, out, 8, NULL, s->node.peer, NULL),
			  "fi_send"))
		;
	node_expect(s, &(struct done){0}, FI_MSG | FI_SEND, NULL);
	mem_fill(out, 8, 2);
	send_one(s, s->node.peer, 0, out, 8);
	node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
	side_meet(s);
	node_close(s, &s->node);
}

static void kinds_receiver(struct side *s)
{
	uint8_t tagged[8], plain[8];
	struct done d;

	node_open(s, &(struct want){0});
	recv_one(s, FI_ADDR_UNSPEC, 0, UINT64_MAX, tagged, 8);
	recv_expect(s, &d, tagged);
	mem_check(s, tagged, 8, 2, "the tagged message");
	while (node_again(s, fi_recv(s->node.ep, plain, 8, NULL, FI_ADDR_UNSPEC, plain),
			  "fi_recv"))
		;
	node_expect(s, &d, FI_MSG | FI_RECV, plain);
	mem_check(s, plain, 8, 1, "the untagged message");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- too long */

static const struct {
	size_t sent, room;
} cuts[] = {
	{100, 50}, {8, 0}, {5000, 4999}, {LONG_SIZE, 1000}, {LONG_SIZE, LONG_SIZE - 1}};

static void cut_sender(struct side *s)
{
	uint8_t *out = mem_new(LONG_SIZE);
	const bool *early = s->arg;
	struct done d;

	node_open(s, &(struct want){0});
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		mem_fill(out, LONG_SIZE, (uint32_t)i);
		if (*early)
			side_meet(s);
		for (int k = 0; k < 2; k++)
			send_one(s, s->node.peer, i, out, cuts[i].sent);
		if (!*early)
			side_meet(s);
		/* Good or bad for the sender is the provider's choice. */
		for (int k = 0; k < 2; k++) {
			if (!node_next(s, &d, WAIT_MS))
				side_die(s, "a truncated send never ends");
		}
		side_meet(s);
	}
	node_close(s, &s->node);
}

static void cut_check(struct side *s, size_t i, const uint8_t *in)
{
	struct done d;

	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "no completion of a truncated receive");
	side_check_u64(s, (uint64_t)d.err, FI_ETRUNC, "error");
	side_check_u64(s, d.e.flags, FI_TAGGED | FI_RECV, "flags");
	side_check(s, d.e.op_context == in, "context");
	side_check_u64(s, d.e.len, cuts[i].room, "len: what was placed");
	side_check_u64(s, d.olen, cuts[i].sent - cuts[i].room, "olen: what was not");
	side_check_u64(s, d.e.tag, i, "tag");
	mem_check(s, in, cuts[i].room, (uint32_t)i, "what was placed");
	for (size_t k = cuts[i].room; k < cuts[i].room + 4096; k++) {
		if (in[k] != 0xee) {
			side_check(s, false, "byte %zu behind the buffer was written",
				   k - cuts[i].room);
			break;
		}
	}
}

static void cut_receiver(struct side *s)
{
	uint8_t *in = mem_new(LONG_SIZE + 4096), *good = mem_new(LONG_SIZE);
	const bool *early = s->arg;
	struct done d;

	node_open(s, &(struct want){0});
	for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
		memset(in, 0xee, LONG_SIZE + 4096);
		if (!*early) {
			side_meet(s);
			node_quiet(s, 20);
		}
		recv_one(s, FI_ADDR_UNSPEC, i, 0, in, cuts[i].room);
		if (*early)
			side_meet(s);
		cut_check(s, i, in);
		/* Not before: long messages complete in any order. */
		recv_one(s, FI_ADDR_UNSPEC, i, 0, good, LONG_SIZE);
		recv_expect(s, &d, good);
		side_check_u64(s, d.e.len, cuts[i].sent, "length of the next message");
		mem_check(s, good, cuts[i].sent, (uint32_t)i, "the next message");
		side_meet(s);
	}
	node_close(s, &s->node);
}

/* ---- cancel */

static void cancel_sender(struct side *s)
{
	uint8_t out[32];

	node_open(s, &(struct want){0});
	side_meet(s);
	mem_fill(out, sizeof(out), 3);
	send_one(s, s->node.peer, 5, out, sizeof(out));
	node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
	side_meet(s);
	node_close(s, &s->node);
}

static void cancel_receiver(struct side *s)
{
	uint8_t in[3][32];
	struct done d;

	node_open(s, &(struct want){0});
	memset(in, 0, sizeof(in));
	for (int i = 0; i < 3; i++)
		recv_one(s, FI_ADDR_UNSPEC, 5, 0, in[i], 32);
	for (int i = 0; i < 2; i++) {
		side_check_u64(s, (uint64_t)fi_cancel(&s->node.ep->fid, in[i]), 0,
			       "fi_cancel");
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "a cancelled receive never completes");
		side_check_u64(s, (uint64_t)d.err, FI_ECANCELED, "error");
		side_check(s, d.e.op_context == in[i], "context");
		side_check(s, d.e.flags & FI_RECV, "flags have no FI_RECV");
	}
	side_check_u64(s, (uint64_t)fi_cancel(&s->node.ep->fid, in[0]), 0,
		       "fi_cancel of nothing");
	node_quiet(s, 20);
	side_meet(s);
	recv_expect(s, &d, in[2]);
	mem_check(s, in[2], 32, 3, "the message that came later");
	side_check(s, in[0][0] == 0 && in[1][0] == 0, "a cancelled buffer was written");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- buffers for many messages */

#define MULTI_SIZE  (64u << 10)
#define MULTI_LEAST 4096
#define MULTI_COUNT 40

static size_t multi_size(uint32_t i)
{
	return i * 997 % 4000;
}

static const struct want want_multi = {.caps = FI_MSG | FI_MULTI_RECV};

static void multi_sender(struct side *s)
{
	uint8_t *out = mem_new(8192);

	node_open(s, &want_multi);
	side_meet(s);
	for (uint32_t i = 0; i < MULTI_COUNT; i++) {
		mem_fill(out, multi_size(i), i);
		while (node_again(
			s,
			fi_send(s->node.ep, out, multi_size(i), NULL, s->node.peer, NULL),
			"fi_send"))
			;
		node_expect(s, &(struct done){0}, FI_MSG | FI_SEND, NULL);
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void multi_post(struct side *s, uint8_t *buf)
{
	struct iovec iov = {buf, MULTI_SIZE};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = buf};

	while (node_again(s, fi_recvmsg(s->node.ep, &msg, FI_MULTI_RECV), "fi_recvmsg"))
		;
}

struct multi {
	uint8_t *buf; /* in use */
	size_t used;
	uint32_t got;
	int released;
};

/* One completion. A buffer is given up when less than the least size is left, by a flag
 * on its last message or by an entry of its own. */
static void multi_take(struct side *s, struct multi *m)
{
	bool release, message;
	struct done d;

	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "no completion of message %u", m->got);
	if (d.err)
		side_die(s, "error completion: %s", fi_strerror(d.err));
	release = d.e.flags & FI_MULTI_RECV;
	message = d.e.flags & FI_RECV && d.e.buf;
	side_check(s, d.e.op_context == m->buf, "context is not the buffer in use");
	side_check_u64(s, d.e.flags & ~FI_MULTI_RECV & ~(release ? FI_MSG | FI_RECV : 0),
		       release ? 0 : FI_MSG | FI_RECV, "flags");
	if (message) {
		side_check(s, MULTI_SIZE - m->used >= MULTI_LEAST,
			   "the buffer is kept too long");
		side_check_u64(s, d.e.len, multi_size(m->got), "length");
		side_check_u64(s, (uint64_t)((uint8_t *)d.e.buf - m->buf), m->used,
			       "place in the buffer");
		mem_check(s, d.e.buf, d.e.len, m->got, "message");
		m->used += d.e.len;
		m->got++;
	}
	if (!release)
		return;
	side_check(s, MULTI_SIZE - m->used < MULTI_LEAST,
		   "the buffer is released too early");
	m->released++;
	m->used = 0;
}

static void multi_receiver(struct side *s)
{
	uint8_t *bufs[2] = {mem_new(MULTI_SIZE), mem_new(MULTI_SIZE)};
	struct multi m = {.buf = bufs[0]};
	size_t least = MULTI_LEAST;
	int seen = 0;

	node_open(s, &want_multi);
	side_must(s,
		  fi_setopt(&s->node.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			    &least, sizeof(least)),
		  "fi_setopt");
	multi_post(s, bufs[0]);
	multi_post(s, bufs[1]);
	side_meet(s);
	while (m.got < MULTI_COUNT) {
		multi_take(s, &m);
		if (m.released > seen) {
			seen = m.released;
			multi_post(s, m.buf);
			m.buf = bufs[m.released % 2];
		}
	}
	side_check(s, m.released >= 1, "no buffer was ever released");
	side_meet(s);
	/* One that is cancelled is released too. */
	side_must(s, fi_cancel(&s->node.ep->fid, m.buf), "fi_cancel");
	{
		struct done d;

		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "a cancelled buffer never completes");
		side_check_u64(s, (uint64_t)d.err, FI_ECANCELED, "error");
		side_check(s, d.e.flags & FI_MULTI_RECV,
			   "no FI_MULTI_RECV when cancelled");
	}
	node_close(s, &s->node);
}

/* ---- a source that is not in the address vector */

static void unknown_sender(struct side *s)
{
	uint8_t out[8] = {1};

	node_open(s, &want_source);
	send_one(s, s->node.peer, 1, out, sizeof(out));
	node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
	side_meet(s);
	side_meet(s);
	send_one(s, s->node.peer, 1, out, sizeof(out));
	node_expect(s, &(struct done){0}, FI_TAGGED | FI_SEND, NULL);
	side_tell(s, s->node.name, sizeof(s->node.name));
	side_meet(s);
	node_close(s, &s->node);
}

/* arg: the application has a name of its own for the source (FI_AV_USER_ID). */
static void unknown_receiver(struct side *s)
{
	const bool named = *(const bool *)s->arg;
	fi_addr_t told = 4711;
	struct want want = want_source;
	char name[sizeof(s->node.name)];
	struct done d;
	uint8_t in[8];

	want.stranger = true;
	want.caps |= named ? FI_AV_USER_ID : 0;
	node_open(s, &want);
	recv_one(s, FI_ADDR_UNSPEC, 1, 0, in, 8);
	recv_expect(s, &d, in);
	side_check_u64(s, d.src, FI_ADDR_NOTAVAIL, "source that is unknown");
	side_meet(s);
	side_meet(s);
	/* The next one is here before its source is known, and is found by it after. */
	side_hear(s, name, sizeof(name));
	node_quiet(s, 20);
	s->node.peer = told;
	side_check_u64(s,
		       (uint64_t)fi_av_insert(s->node.av, name, 1, &s->node.peer,
					      named ? FI_AV_USER_ID : 0, NULL),
		       1, "fi_av_insert");
	if (!named)
		told = s->node.peer;
	recv_one(s, s->node.peer, 1, 0, in, 8);
	recv_expect(s, &d, in);
	side_check_u64(s, d.src, told, "source that is known now");
	side_meet(s);
	node_close(s, &s->node);
}

static const bool yes = true, no = false;

static const struct test_case cases[] = {
	{.name = "directed receives and sources", .run = {directed_peer, directed_self}},
	{.name = "tags and masks", .run = {tags_sender, tags_receiver}},
	{.name = "tagged and untagged are apart", .run = {kinds_sender, kinds_receiver}},
	{.name = "truncation, expected", .run = {cut_sender, cut_receiver}, .arg = &yes},
	{.name = "truncation, unexpected", .run = {cut_sender, cut_receiver}, .arg = &no},
	{.name = "cancel", .run = {cancel_sender, cancel_receiver}},
	{.name = "multi-receive", .run = {multi_sender, multi_receiver}},
	{.name = "a source that is not known yet",
	 .run = {unknown_sender, unknown_receiver},
	 .arg = &no},
	{.name = "a source that the application names",
	 .run = {unknown_sender, unknown_receiver},
	 .arg = &yes},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
