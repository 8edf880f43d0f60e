/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors of this process, over loopback: exchanges, ends, refusals, strangers. */
#include "config.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/tests/door_rig.h"
#include "prov/wire/verbs/verbs_call.h"

static void test_exchange(void)
{
	struct verbs_call *call;
	struct side a, b;
	int mark;

	side_open(&a, "node1");
	side_open(&b, "node2");
	a.slow = true;
	tap_ok(side_dial(&a, verbs_door_addr(b.door), 77, &mark, &call) == 0, "dialled");
	tap_ok(rig_until(&a, &b, &a.answers, 1), "one knock, one answer");
	tap_ok(b.hellos == 1 && b.readies == 0,
	       "the answerer waits for the third message (rule C7)");
	tap_ok(a.last_arg == &mark, "the dialler's argument comes back");
	tap_ok(b.heard.session == 77 &&
		       wire_addr_equal(&b.heard.door, verbs_door_addr(a.door)),
	       "the answerer has the dialler's card");
	tap_ok(strcmp(a.heard.place.host, "node2") == 0,
	       "and the dialler the answerer's");
	tap_ok(memcmp(&a.terms, &b.terms, sizeof(a.terms)) == 0 &&
		       a.terms.distance == FABRIC_SAME_RACK,
	       "both derived the same terms");
	verbs_call_ready(call);
	tap_ok(rig_until(&a, &b, &b.readies, 1), "then the dialler is ready");
	verbs_call_drop(call, 0);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_ESHUTDOWN &&
		       b.last_arg == &b,
	       "goodbye is heard");
	tap_ok(a.downs == 0, "who dropped the call hears nothing");
	side_close(&a);
	side_close(&b);
}

/* A process that dies says nothing: its connections end. */
static void test_death(void)
{
	struct verbs_call *call;
	struct side a, b;

	side_open(&a, "node1");
	side_open(&b, "node2");
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	tap_ok(rig_until(&a, &b, &b.readies, 1), "a call is up");
	shutdown(call->sock, SHUT_RDWR);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_ECONNRESET,
	       "an end without a word is a death");
	tap_ok(rig_until(&a, &b, &a.downs, 1) && a.last_err == -FI_ECONNRESET,
	       "on both sides");
	side_dial(&a, verbs_door_addr(b.door), 2, NULL, &call);
	rig_until(&a, &b, &b.readies, 2);
	side_close(&a);
	tap_ok(rig_until(&b, &b, &b.downs, 2) && b.last_err == -FI_ESHUTDOWN,
	       "closing a door says goodbye to all");
	side_close(&b);
}

/* What two ends that are up say to each other, also in pieces. */
static void test_words(void)
{
	uint8_t word[VERBS_WORD_MAX + 1], frame[VERBS_FRAME_HEAD + 5];
	struct verbs_frame f = {.kind = VERBS_FRAME_WORD, .len = 5};
	struct verbs_call *call;
	struct side a, b;

	for (size_t i = 0; i < sizeof(word); i++)
		word[i] = (uint8_t)(i * 3 + 1);
	side_open(&a, "node1");
	side_open(&b, "node2");
	a.slow = true;
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	tap_ok(rig_until(&a, &b, &a.answers, 1) &&
		       verbs_call_say(call, word, 1) == -FI_EAGAIN,
	       "nothing is said before a call is up");
	verbs_call_ready(call);
	tap_ok(rig_until(&a, &b, &b.readies, 1), "it is up");
	tap_ok(verbs_call_say(call, word, VERBS_WORD_MAX + 1) == -FI_EINVAL &&
		       verbs_call_say(call, word, 0) == -FI_EINVAL,
	       "a word has its bounds");
	tap_ok(verbs_call_say(call, word, VERBS_WORD_MAX) == 0 &&
		       rig_until(&a, &b, &b.words, 1) && b.word_len == VERBS_WORD_MAX &&
		       memcmp(b.word, word, VERBS_WORD_MAX) == 0,
	       "the answerer hears the dialler's word");
	tap_ok(verbs_call_say(b.last, word, 7) == 0 && rig_until(&a, &b, &a.words, 1) &&
		       a.word_len == 7 && memcmp(a.word, word, 7) == 0,
	       "and the dialler the answerer's");
	verbs_frame_write(&f, frame);
	memcpy(frame + VERBS_FRAME_HEAD, word, 5);
	for (size_t i = 0; i < sizeof(frame); i++) {
		(void)!send(call->sock, frame + i, 1, MSG_NOSIGNAL);
		verbs_door_progress(b.door, rig_now());
	}
	tap_ok(rig_until(&a, &b, &b.words, 2) && b.word_len == 5 &&
		       memcmp(b.word, word, 5) == 0,
	       "one that comes byte by byte is heard whole");
	f.len = VERBS_WORD_MAX + VERBS_PROOF;
	verbs_frame_write(&f, frame);
	(void)!send(call->sock, frame, VERBS_FRAME_HEAD, MSG_NOSIGNAL);
	memset(word, 0, sizeof(word));
	(void)!send(call->sock, word, sizeof(word), MSG_NOSIGNAL);
	(void)!send(call->sock, word, sizeof(word), MSG_NOSIGNAL);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_ECONNRESET &&
		       b.words == 2,
	       "one that is too long ends the call");
	side_close(&a);
	side_close(&b);
}

/* A word that crosses the end of its call: the end is heard, and for what it is. */
static void test_crossing(void)
{
	static const int words[] = {-FI_ECONNREFUSED, -FI_ESHUTDOWN};
	uint8_t word[VERBS_WORD_MAX] = {1};
	struct verbs_call *call;
	struct side a, b;

	for (unsigned i = 0; i < 2; i++) {
		side_open(&a, "node1");
		side_open(&b, "node2");
		side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
		tap_ok(rig_until(&a, &b, &b.readies, 1), "a call is up");
		verbs_call_drop(b.last, words[i]);
		/* Not heard yet. */
		tap_ok(verbs_call_say(call, word, sizeof(word)) == 0 &&
			       verbs_call_say(call, word, sizeof(word)) == 0,
		       "its other end speaks meanwhile");
		verbs_door_progress(b.door, rig_now());
		tap_ok(rig_until(&a, &b, &a.downs, 1) && a.last_err == words[i],
		       "and hears %d", words[i]);
		tap_ok(b.words == 0 && b.downs == 0, "who ended it hears nothing more");
		side_close(&a);
		side_close(&b);
	}
}

static void test_refusals(void)
{
	static const int words[] = {-FI_EACCES, -FI_EHOSTUNREACH, -FI_ECONNREFUSED,
				    -FI_ESHUTDOWN};
	struct verbs_call *call;
	struct side a, b;

	side_open(&a, "node1");
	side_open(&b, "node2");
	b.manner = SIDE_REFUSES;
	for (unsigned i = 0; i < 4; i++) {
		b.refusal = words[i];
		side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
		tap_ok(rig_until(&a, &b, &a.downs, i + 1) && a.last_err == words[i],
		       "the wire refuses with %d, the dialler hears it", words[i]);
	}
	tap_is_int(b.downs, 0, "who refused hears nothing more");
	side_close(&a);
	side_close(&b);
}

/* A socket of nobody's that listens. */
static int raw_listen(struct wire_addr *at)
{
	socklen_t len = sizeof(at->in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	rig_addr(at, INADDR_LOOPBACK, 0);
	if (fd < 0 || bind(fd, &at->sa, len) || listen(fd, 16) ||
	    getsockname(fd, &at->sa, &len))
		tap_bail("no port: %m");
	return fd;
}

static int raw_connect(const struct wire_addr *to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, &to->sa, wire_addr_len(to)))
		tap_bail("no connection: %m");
	return fd;
}

static void test_nobody(void)
{
	struct wire_addr at;
	struct verbs_call *call;
	struct side a;
	int fd, rc;

	side_open(&a, "node1");
	close(raw_listen(&at));
	rc = side_dial(&a, &at, 1, NULL, &call);
	tap_ok(rc == -FI_ECONNREFUSED ||
		       (rig_until(&a, &a, &a.downs, 1) && a.last_err == -FI_ECONNREFUSED),
	       "nobody there is refused");
	a.downs = 0;
	fd = raw_listen(&at);
	side_dial(&a, &at, 1, NULL, &call);
	rc = accept(fd, NULL, NULL);
	(void)!write(rc, "HTTP/1.0 400 Bad Request\r\n", 26);
	tap_ok(rig_until(&a, &a, &a.downs, 1) && a.last_err == -FI_EHOSTUNREACH,
	       "somebody who isn't Weft can't be reached");
	close(rc);
	side_dial(&a, &at, 1, NULL, &call);
	rc = accept(fd, NULL, NULL);
	close(rc);
	tap_ok(rig_until(&a, &a, &a.downs, 2) && a.last_err == -FI_ECONNREFUSED,
	       "somebody who says nothing is refused");
	close(fd);
	side_close(&a);
}

static void hello_bytes(uint8_t *bytes, size_t *len, const struct wire_addr *door)
{
	struct verbs_frame frame = {.kind = VERBS_FRAME_HELLO};
	struct verbs_card card;

	card_make(&card, "node9", 9);
	card.door = *door;
	frame.len = (uint16_t)verbs_card_write(&card, bytes + VERBS_FRAME_HEAD);
	verbs_frame_write(&frame, bytes);
	*len = VERBS_FRAME_HEAD + (size_t)frame.len;
}

/* How much the other end said before it closed. */
static size_t raw_heard;

/* Whether the other end closes within the patience, and has said so much at least. */
static bool raw_ends(struct side *s, int fd, uint8_t *said, size_t want)
{
	uint64_t end = rig_now() + RIG_PATIENCE_MS * UINT64_C(1000000);
	uint8_t bytes[4096];
	size_t at = 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	raw_heard = 0;
	while (rig_now() < end) {
		ssize_t n = read(fd, bytes, sizeof(bytes));

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return at >= want;
		for (ssize_t i = 0; i < n && at < want; i++)
			said[at++] = bytes[i];
		raw_heard += n > 0 ? (size_t)n : 0;
		verbs_door_progress(s->door, rig_now());
		usleep(1000);
	}
	return false;
}

static void test_garbage(void)
{
	uint8_t bytes[4096], said[VERBS_FRAME_HEAD];
	struct verbs_frame frame;
	struct verbs_call *call;
	struct side a, b;
	size_t len;
	int fd;

	side_open(&a, "node1");
	side_open(&b, "node2");
	fd = raw_connect(verbs_door_addr(b.door));
	(void)!write(fd, "GET / HTTP/1.1\r\nHost: weft\r\n\r\n", 31);
	tap_ok(raw_ends(&b, fd, said, 0) && raw_heard == 0,
	       "other languages are not spoken, not even to refuse");
	close(fd);

	fd = raw_connect(verbs_door_addr(b.door));
	hello_bytes(bytes, &len, verbs_door_addr(a.door));
	bytes[4]++;
	(void)!write(fd, bytes, len);
	tap_ok(raw_ends(&b, fd, said, sizeof(said)) &&
		       verbs_frame_read(said, &frame) == VERBS_FRAME_OK &&
		       frame.kind == VERBS_FRAME_END && frame.end == VERBS_END_VERSION,
	       "another version is told so");
	close(fd);

	fd = raw_connect(verbs_door_addr(b.door));
	hello_bytes(bytes, &len, verbs_door_addr(a.door));
	bytes[VERBS_FRAME_HEAD + 40]++; /* a length that is none */
	bytes[VERBS_FRAME_HEAD + 6]++;
	(void)!write(fd, bytes, len);
	tap_ok(raw_ends(&b, fd, said, sizeof(said)) &&
		       verbs_frame_read(said, &frame) == VERBS_FRAME_OK &&
		       frame.end == VERBS_END_CANT,
	       "a card that is none is told so");
	close(fd);

	fd = raw_connect(verbs_door_addr(b.door));
	frame = (struct verbs_frame){.kind = VERBS_FRAME_READY};
	verbs_frame_write(&frame, bytes);
	(void)!write(fd, bytes, VERBS_FRAME_HEAD);
	tap_ok(raw_ends(&b, fd, said, 0), "who is ready before it said hello goes");
	close(fd);

	tap_is_int(b.hellos, 0, "the wire has heard of none of them");
	side_dial(&a, verbs_door_addr(b.door), 3, NULL, &call);
	tap_ok(rig_until(&a, &b, &b.readies, 1), "and the next one is let in");
	side_close(&a);
	side_close(&b);
}

/* A peer that hears of another version is no peer. */
static void test_other_version(void)
{
	struct verbs_frame frame = {.kind = VERBS_FRAME_END, .end = VERBS_END_VERSION};
	uint8_t head[VERBS_FRAME_HEAD];
	struct verbs_call *call;
	struct wire_addr at;
	struct side a;
	int fd, sock;

	side_open(&a, "node1");
	fd = raw_listen(&at);
	side_dial(&a, &at, 1, NULL, &call);
	sock = accept(fd, NULL, NULL);
	verbs_frame_write(&frame, head);
	head[4] = 9; /* in its own version's words */
	(void)!write(sock, head, sizeof(head));
	tap_ok(rig_until(&a, &a, &a.downs, 1) && a.last_err == -FI_EHOSTUNREACH,
	       "another version can't be reached");
	close(sock);
	close(fd);
	side_close(&a);
}

static void test_slow(void)
{
	uint8_t bytes[4096];
	int silent[6], fd;
	struct verbs_call *call;
	struct side a, b;
	size_t len;

	side_open(&a, "node1");
	if (side_open_with(&b, "node2", (struct verbs_door_config){.half_open = 2}))
		tap_bail("no door");
	for (int i = 0; i < 6; i++)
		silent[i] = raw_connect(verbs_door_addr(b.door));
	side_dial(&a, verbs_door_addr(b.door), 4, NULL, &call);
	tap_ok(rig_until(&a, &b, &b.readies, 1),
	       "six who say nothing at a door with two places don't keep out a peer");
	for (int i = 0; i < 6; i++)
		close(silent[i]);

	fd = raw_connect(verbs_door_addr(b.door));
	hello_bytes(bytes, &len, verbs_door_addr(a.door));
	for (size_t i = 0; i < len; i++) {
		(void)!write(fd, bytes + i, 1);
		verbs_door_progress(b.door, rig_now());
		if (b.hellos == 2 && i + 1 < len)
			break;
	}
	tap_ok(rig_until(&a, &b, &b.hellos, 2), "a card may come byte by byte");
	close(fd);
	tap_ok(rig_until(&a, &b, &b.downs, 1) && b.last_err == -FI_ECONNRESET,
	       "who goes before it is ready is down");
	side_close(&a);
	side_close(&b);
}

/* Time passes for one door; none is slept through. */
#define LATER UINT64_C(11000000000)

static void test_deadline_stranger(struct side *a, struct side *b)
{
	struct verbs_call *call;
	struct wire_addr at;
	uint8_t said[1];
	int fd;

	fd = raw_connect(verbs_door_addr(b->door));
	verbs_door_progress(b->door, rig_now());
	verbs_door_progress(b->door, rig_now() + LATER);
	tap_ok(raw_ends(b, fd, said, 0), "a stranger who says nothing is sent away");
	close(fd);
	fd = raw_listen(&at);
	side_dial(a, &at, 1, NULL, &call);
	tap_ok(verbs_door_due(a->door) <= rig_now() + LATER, "a dial has a deadline");
	verbs_door_progress(a->door, rig_now());
	verbs_door_progress(a->door, rig_now() + LATER);
	tap_ok(a->downs == 1 && a->last_err == -FI_ECONNREFUSED,
	       "a door that doesn't answer is given up");
	close(fd);
}

static void test_deadline(void)
{
	struct verbs_call *call;
	struct side a, b;

	side_open(&a, "node1");
	side_open(&b, "node2");
	test_deadline_stranger(&a, &b);
	b.manner = SIDE_HOLDS;
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	rig_until(&a, &b, &b.hellos, 1);
	verbs_door_progress(b.door, rig_now() + LATER);
	tap_is_int(b.downs, 1, "a wire that doesn't answer in time loses the call");
	tap_ok(rig_until(&a, &b, &a.downs, 2), "and so does the dialler");
	b.manner = SIDE_ANSWERS;
	a.slow = true;
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call);
	rig_until(&a, &b, &a.answers, 1);
	verbs_door_progress(b.door, rig_now() + LATER);
	tap_ok(b.downs == 2 && b.readies == 0, "a dialler that is never ready likewise");
	tap_ok(rig_until(&a, &b, &a.downs, 3), "on both sides");
	tap_ok(verbs_door_due(a.door) == UINT64_MAX &&
		       verbs_door_due(b.door) == UINT64_MAX,
	       "then nothing is due any more");
	side_close(&a);
	side_close(&b);
}

/* Both dial at once, and one dials itself. */
static void test_simultaneous(void)
{
	struct verbs_call *call[3];
	struct side a, b;

	side_open(&a, "node1");
	side_open(&b, "node2");
	side_dial(&a, verbs_door_addr(b.door), 1, NULL, &call[0]);
	side_dial(&b, verbs_door_addr(a.door), 2, NULL, &call[1]);
	tap_ok(rig_until(&a, &b, &a.readies, 1) && rig_until(&a, &b, &b.readies, 1),
	       "two that dial at once have two calls");
	side_dial(&a, verbs_door_addr(a.door), 3, NULL, &call[2]);
	tap_ok(rig_until(&a, &b, &a.readies, 2) && a.terms.distance == FABRIC_SAME_HOST,
	       "a door may be dialled from inside");
	side_close(&a);
	side_close(&b);
}

/* A job starts: all dial one door at the same time. */
static void test_crowd(void)
{
	enum { CROWD = 150 };
	struct verbs_call *call[CROWD];
	struct side a, b;

	side_open(&a, "node1");
	if (side_open_with(&b, "node2", (struct verbs_door_config){.half_open = 8}))
		tap_bail("no door");
	for (unsigned i = 0; i < CROWD; i++)
		side_dial(&a, verbs_door_addr(b.door), i + 1, NULL, &call[i]);
	tap_ok(rig_until(&a, &b, &b.readies, CROWD) && a.downs == 0 && b.downs == 0,
	       "a crowd at a door with eight places gets in, all of it");
	side_close(&a);
	side_close(&b);
}

static void test_addresses(void)
{
	struct verbs_door_config config = {.any = true};
	struct verbs_call *call;
	struct wire_addr at;
	struct side a, b;

	side_open(&a, "node1");
	config.addr = *verbs_door_addr(a.door);
	tap_is_int(side_open_with(&b, "node2", config), -FI_EADDRINUSE,
		   "an address that is taken");
	rig_addr(&config.addr, 0xcb007101, 4711);
	config.any = false;
	tap_is_int(side_open_with(&b, "node2", config), -FI_EADDRNOTAVAIL,
		   "an address of another host");
	rig_addr(&config.addr, INADDR_ANY, 0);
	tap_is_int(side_open_with(&b, "node2", config), 0, "no host in particular");
	tap_ok(wire_addr_has_host(verbs_door_addr(b.door)), "has one all the same");
	rig_addr(&at, INADDR_LOOPBACK, ntohs(verbs_door_addr(b.door)->in.sin_port));
	side_dial(&a, &at, 5, NULL, &call);
	tap_ok(rig_until(&a, &b, &b.readies, 1), "and is reached by the others too");
	side_close(&b);
	memset(&config.addr, 0, sizeof(config.addr));
	config.addr.in6.sin6_family = AF_INET6;
	config.addr.in6.sin6_addr = in6addr_loopback;
	if (side_open_with(&b, "node2", config)) {
		tap_skip(1, "no IPv6 here");
	} else {
		side_dial(&a, verbs_door_addr(b.door), 6, NULL, &call);
		tap_ok(rig_until(&a, &b, &b.readies, 1), "by IPv6 as well");
		side_close(&b);
	}
	side_close(&a);
}

/* Contexts of one address share its port. */
static void test_contexts(void)
{
	struct verbs_door_config config = {.any = false};
	struct verbs_call *call;
	struct wire_addr to;
	struct side a, b, c;

	side_open(&a, "node1");
	side_open(&b, "node2");
	config.addr = *verbs_door_addr(b.door);
	config.addr.context = 3;
	tap_is_int(side_open_with(&c, "node3", config), 0, "another context");
	to = config.addr;
	side_dial(&a, &to, 1, NULL, &call);
	for (int i = 0; i < RIG_PATIENCE_MS && c.readies == 0; i++) {
		verbs_door_progress(a.door, rig_now());
		verbs_door_progress(b.door, rig_now());
		verbs_door_progress(c.door, rig_now());
		usleep(1000);
	}
	tap_ok(c.readies == 1 && b.hellos == 0, "is reached at the same port");
	to.context = 0;
	side_dial(&a, &to, 2, NULL, &call);
	for (int i = 0; i < RIG_PATIENCE_MS && b.readies == 0; i++) {
		verbs_door_progress(c.door, rig_now());
		verbs_door_progress(a.door, rig_now());
		verbs_door_progress(b.door, rig_now());
		usleep(1000);
	}
	tap_ok(b.readies == 1 && c.hellos == 1, "and so is the first");
	to.context = 9;
	side_dial(&a, &to, 3, NULL, &call);
	tap_ok(rig_until(&a, &b, &a.downs, 1) && a.last_err == -FI_ECONNREFUSED,
	       "one that isn't there is refused");
	side_close(&b);
	to.context = 3;
	side_dial(&a, &to, 4, NULL, &call);
	tap_ok(rig_until(&a, &c, &c.readies, 2), "the port stays while one is open");
	side_close(&c);
	side_close(&a);
}

int main(void)
{
	test_exchange();
	test_death();
	test_words();
	test_crossing();
	test_refusals();
	test_nobody();
	test_garbage();
	test_other_version();
	test_slow();
	test_deadline();
	test_simultaneous();
	test_crowd();
	test_addresses();
	test_contexts();
	return tap_done();
}
