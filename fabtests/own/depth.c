/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many operations under way at once: sends of both sides before either receives, receives
 * in the reverse order of large sends, messages that nobody has asked for yet, and as
 * many operations as there may be. What an endpoint holds for them stays bounded, and
 * serves again.
 *
 * --count N messages (the short form of make check otherwise).
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "fabtests/own/soak.h"
#include "util/tap.h"

#define COUNT_SHORT 3000
#define LARGE	    ((size_t)12 << 10) /* announced by its header, not carried by it */
#define WINDOW	    64		       /* receives that are posted at once */
#define SLOW_MS	    120000
#define FULL_MOST   (1u << 20) /* by then there must have been an -FI_EAGAIN */
#define TAG_LAST    (UINT64_C(1) << 40)

static int count = COUNT_SHORT;

/* ---- many posts ------------------------------------------------------------------- */

/* The bytes of message i begin at byte i * 8 of the sender's memory, which says at each
 * word which it is: no two messages are the same, and all share the memory. */
static uint64_t *words_new(size_t messages)
{
	size_t len = messages + LARGE / 8 + 1;
	uint64_t *words = mem_new(len * 8);

	for (size_t i = 0; i < len; i++)
		words[i] = i * UINT64_C(0x9e3779b97f4a7c15);
	return words;
}

static bool is_message(const uint64_t *in, size_t bytes, uint64_t i)
{
	for (size_t k = 0; k < bytes / 8; k++)
		if (in[k] != (i + k) * UINT64_C(0x9e3779b97f4a7c15))
			return false;
	return true;
}

/* Completions that came while something was posted: a queue that nobody reads is full one
 * day, and then nothing can be posted. */
static struct {
	struct done *d;
	size_t first, end, room;
} stash;

static void stash_put(const struct done *d)
{
	if (stash.end == stash.room) {
		stash.room = stash.room ? 2 * stash.room : 1024;
		stash.d = realloc(stash.d, stash.room * sizeof(*stash.d));
		if (!stash.d)
			abort();
	}
	stash.d[stash.end++] = *d;
}

/* The next completion, early or not. */
static bool stash_next(struct side *s, struct done *d)
{
	if (stash.first == stash.end)
		return node_next(s, d, SLOW_MS);
	*d = stash.d[stash.first++];
	if (stash.first == stash.end)
		stash.first = stash.end = 0;
	return true;
}

/* After a post: true when it has to be posted again. */
static bool again(struct side *s, ssize_t rc, const char *call)
{
	struct done d;

	if (!node_again(s, rc, call))
		return false;
	if (node_next(s, &d, 0))
		stash_put(&d);
	return true;
}

static void send_tagged(struct side *s, const void *buf, size_t len, uint64_t tag,
			uint64_t end)
{
	while (again(s, fi_tsend(s->node.ep, buf, len, NULL, s->node.peer, tag, NULL),
		     "fi_tsend")) {
		if (now_ms() > end)
			side_die(s,
				 "no room to send message %llu: the other side receives "
				 "only when all are posted",
				 (unsigned long long)tag);
	}
}

static void recv_tagged(struct side *s, void *buf, size_t len, uint64_t tag,
			uint64_t ignore, uint64_t end)
{
	while (node_again(
		s, fi_trecv(s->node.ep, buf, len, NULL, FI_ADDR_UNSPEC, tag, ignore, buf),
		"fi_trecv")) {
		if (now_ms() > end)
			side_die(s, "no room for receive %llu", (unsigned long long)tag);
	}
}

/* Completions of sends are counted, that of a receive is returned; false: enough sends.
 */
static bool next_recv(struct side *s, struct done *d, int *sent, int sends)
{
	while (*sent < sends || sends < 0) {
		if (!stash_next(s, d))
			side_die(s, "no completion, after %d of sends", *sent);
		if (d->err)
			side_die(s, "error completion: %s", fi_strerror(d->err));
		if (d->e.flags & FI_RECV)
			return true;
		++*sent;
	}
	return false;
}

/* Receives large messages first, first + step, ... by their tags, some at a time. */
static void recv_all(struct side *s, int messages, int first, int step, int *sent)
{
	uint64_t end = now_ms() + SLOW_MS;
	uint8_t *in = mem_new(WINDOW * LARGE);
	int posted = 0, got = 0;
	struct done d;

	for (; posted < messages && posted < WINDOW; posted++)
		recv_tagged(s, in + (size_t)posted * LARGE, LARGE,
			    (uint64_t)(first + step * posted), 0, end);
	while (got < messages) {
		next_recv(s, &d, sent, -1);
		got++;
		if (d.e.len != LARGE || !is_message(d.e.op_context, LARGE, d.e.tag))
			side_die(s, "message %llu: %zu bytes, or wrong ones",
				 (unsigned long long)d.e.tag, d.e.len);
		if (posted < messages) {
			recv_tagged(s, d.e.op_context, LARGE,
				    (uint64_t)(first + step * posted), 0, end);
			posted++;
		}
	}
	mem_free(in, WINDOW * LARGE);
}

static const struct want want_tagged = {.caps = FI_TAGGED | FI_MSG};

/* ---- both sides send before they receive */

static void both_send(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS;
	uint64_t *words = words_new((size_t)count);
	int sent = 0;
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	for (int i = 0; i < count; i++)
		send_tagged(s, words + i, LARGE, (uint64_t)i, end);
	side_meet(s);
	recv_all(s, count, 0, 1, &sent);
	side_check(s, !next_recv(s, &d, &sent, count), "a receive too many");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- and the same with all receives first */

static void both_receive(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS;
	uint64_t *words = words_new((size_t)count), *in = mem_new((size_t)count * 8);
	int sent = 0, got = 0;
	struct done d;

	node_open(s, &want_tagged);
	for (int i = 0; i < count; i++)
		recv_tagged(s, in + i, 8, (uint64_t)i, i % 2 ? TAG_LAST : 0, end);
	side_meet(s);
	for (int i = 0; i < count; i++) /* in some other order */
		send_tagged(s, words + (i ^ 1) % count, 8, (uint64_t)((i ^ 1) % count),
			    end);
	while (got < count) {
		next_recv(s, &d, &sent, -1);
		got++;
		if (d.e.op_context != in + d.e.tag ||
		    !is_message(d.e.op_context, 8, d.e.tag))
			side_die(s, "message %llu came to another receive, or wrong",
				 (unsigned long long)d.e.tag);
	}
	side_check(s, !next_recv(s, &d, &sent, count), "a receive too many");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- reverse order of large sends */

static void reverse_sender(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS;
	uint64_t *words = words_new((size_t)count);
	int sent = 0;
	struct done d;

	node_open(s, &want_tagged);
	for (int i = 0; i < count; i++)
		send_tagged(s, words + i, LARGE, (uint64_t)i, end);
	side_meet(s);
	side_check(s, !next_recv(s, &d, &sent, count), "a receive");
	side_meet(s);
	node_close(s, &s->node);
}

static void reverse_receiver(struct side *s)
{
	int sent = 0;

	node_open(s, &want_tagged);
	side_meet(s);
	recv_all(s, count, count - 1, -1, &sent);
	side_check_u64(s, (uint64_t)sent, 0, "sends");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- nobody has asked for them yet */

#define FLOODS	   5
#define FLOOD_WARM 2 /* from this one on no more may be held */

/* Of 0 to 63 bytes; what they say is i. */
static size_t flood_len(int i)
{
	return (size_t)i * 7 % 64;
}

static void flood_sender(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS;
	struct done d;

	node_open(s, &want_tagged);
	for (int round = 0; round < FLOODS; round++) {
		uint8_t *out = mem_new((size_t)count * 64);
		int sent = 0;

		side_meet(s);
		for (int i = 0; i < count; i++) {
			mem_fill(out + (size_t)i * 64, flood_len(i), (uint32_t)i);
			send_tagged(s, out + (size_t)i * 64, flood_len(i), (uint64_t)i,
				    end);
		}
		send_tagged(s, out, 0, TAG_LAST, end);
		side_meet(s);
		side_check(s, !next_recv(s, &d, &sent, count + 1), "a receive");
		mem_free(out, (size_t)count * 64);
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void flood_take(struct side *s, uint64_t end)
{
	struct done d;
	uint8_t in[64];
	int sent = 0;

	/* The last of them finds its receive: all are here. */
	recv_tagged(s, in, 64, TAG_LAST, 0, end);
	next_recv(s, &d, &sent, -1);
	for (int i = 0; i < count; i++) {
		recv_tagged(s, in, 64, 0, i % 2 ? UINT64_MAX : TAG_LAST - 1, end);
		next_recv(s, &d, &sent, -1);
		if (d.e.tag != (uint64_t)i || d.e.len != flood_len(i))
			side_die(s, "message %d: got %llu of %zu bytes", i,
				 (unsigned long long)d.e.tag, d.e.len);
		if (!mem_check(s, in, d.e.len, (uint32_t)i, "message"))
			side_die(s, "message %d", i);
	}
}

static void flood_receiver(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS;
	struct soak_use first, last;

	node_open(s, &want_tagged);
	for (int round = 0; round < FLOODS; round++) {
		side_meet(s);
		side_meet(s);
		flood_take(s, end);
		soak_measure(round <= FLOOD_WARM ? &first : &last);
	}
	/* The first floods took memory, and window by window; the next find it there. */
	if (soak_is_exact(&last))
		side_check(s, last.held_kb < first.held_kb + 512,
			   "%ld KB after %d floods, %ld KB after %d", first.held_kb,
			   FLOOD_WARM + 1, last.held_kb, FLOODS);
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- as many as there may be */

static void full_sender(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS, posted = 0, word = 7;
	int sent = 0;
	ssize_t rc = 0;
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	/* Nobody reads: the first go into the ring, the others wait here. */
	while (posted < FULL_MOST) {
		rc = fi_tsend(s->node.ep, &word, sizeof(word), NULL, s->node.peer, posted,
			      NULL);
		if (rc)
			break;
		posted++;
	}
	side_check_u64(s, (uint64_t)-rc, FI_EAGAIN, "when all are in use");
	side_check(s, posted >= s->node.info->tx_attr->size,
		   "only %llu sends were taken, %zu are promised",
		   (unsigned long long)posted, s->node.info->tx_attr->size);
	side_tell(s, &posted, sizeof(posted));
	send_tagged(s, &word, sizeof(word), TAG_LAST, end); /* when there is room */
	side_check(s, !next_recv(s, &d, &sent, (int)posted + 1), "a receive");
	side_meet(s);
	node_close(s, &s->node);
}

static void full_receiver(struct side *s)
{
	uint64_t end = now_ms() + SLOW_MS, sends, word = 0, posted = 0;
	uint64_t *in;
	int sent = 0;
	ssize_t rc = 0;
	struct done d;

	node_open(s, &want_tagged);
	side_meet(s);
	side_hear_passive(s, &sends, sizeof(sends));
	/* As many receives as there may be, which none of the messages fits. */
	in = mem_new(FULL_MOST * sizeof(*in));
	while (posted < FULL_MOST) {
		rc = fi_trecv(s->node.ep, in + posted, 8, NULL, FI_ADDR_UNSPEC,
			      TAG_LAST * 2 + posted, 0, in + posted);
		if (rc)
			break;
		posted++;
	}
	side_check_u64(s, (uint64_t)-rc, FI_EAGAIN, "when all are in use");
	side_check(s, posted >= s->node.info->rx_attr->size,
		   "only %llu receives were taken, %zu are promised",
		   (unsigned long long)posted, s->node.info->rx_attr->size);
	side_must(s, fi_cancel(&s->node.ep->fid, in), "fi_cancel");
	side_check(s, node_next(s, &d, WAIT_MS) && d.err == FI_ECANCELED, "cancelled");
	for (uint64_t i = 0; i <= sends; i++) {
		uint64_t tag = i < sends ? i : TAG_LAST;

		recv_tagged(s, &word, 8, tag, 0, end);
		next_recv(s, &d, &sent, -1);
		if (d.e.tag != tag || word != 7)
			side_die(s, "message %llu: got %llu", (unsigned long long)i,
				 (unsigned long long)d.e.tag);
	}
	side_meet(s);
	node_close(s, &s->node);
}

static const struct test_case cases[] = {
	{.name = "both sides send before they receive",
	 .run = {both_send, both_send},
	 .seconds = 300},
	{.name = "both sides post all receives first",
	 .run = {both_receive, both_receive},
	 .seconds = 300},
	{.name = "large sends are received in reverse order",
	 .run = {reverse_sender, reverse_receiver},
	 .seconds = 300},
	{.name = "messages that nobody asked for, in order",
	 .run = {flood_sender, flood_receiver},
	 .seconds = 300},
	{.name = "all operations in use, and room again",
	 .run = {full_sender, full_receiver},
	 .seconds = 300,
	 .needs_weft = true},
};

int main(int argc, char **argv)
{
	struct soak k;

	test_init(argc, argv);
	soak_init(&k, argc, argv, tap_short() ? COUNT_SHORT / 2 : COUNT_SHORT);
	count = k.count / 2 * 2;
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
