/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer over UDP that says nothing any more, since its process is stopped: what was
 * under way to it fails within the configured time, and not much before; its address is
 * printed, so that whoever runs this can look for it in the log. For FI_WEFT_WIRE=uet.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT	   "1500" /* ms */
#define TIMEOUT_MS 1500
#define OPS	   4
#define LONG	   ((size_t)1 << 20) /* its end needs the peer */

static const struct want want_messages = {.caps = FI_MSG | FI_TAGGED};

static void peer_print(struct side *s)
{
	struct sockaddr_in at;
	size_t len = sizeof(at);
	char host[INET_ADDRSTRLEN];

	side_must(s, fi_av_lookup(s->node.av, s->node.peer, &at, &len), "fi_av_lookup");
	if (!side_check(s, at.sin_family == AF_INET, "the peer has no IPv4 address"))
		return;
	printf("# the peer is %s:%u\n",
	       inet_ntop(AF_INET, &at.sin_addr, host, sizeof(host)), ntohs(at.sin_port));
	fflush(stdout);
}

static void send_one(struct side *s, const uint8_t *buf, size_t len, void *context)
{
	while (node_again(s, fi_send(s->node.ep, buf, len, NULL, s->node.peer, context),
			  "fi_send"))
		;
}

/* One message arrives, so that there is a link; then the peer stops. */
static void stopper_run(struct side *s)
{
	uint8_t *buf = mem_new(LONG);
	uint64_t begin;
	struct done d;

	node_open(s, &want_messages);
	peer_print(s);
	send_one(s, buf, 64, s);
	side_check(s, node_next(s, &d, WAIT_MS) && !d.err, "the first message is lost");
	side_meet(s);
	kill(s->peer_pid, SIGSTOP);
	begin = now_ms();
	for (int i = 0; i < OPS; i++)
		send_one(s, buf, LONG, buf + i);
	for (int i = 0; i < OPS; i++) {
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "message %d has no end %d ms after its peer's", i,
				 WAIT_MS);
		side_check(s, d.err == FI_ECONNRESET, "message %d: %s", i,
			   fi_strerror(d.err));
	}
	side_check(s, now_ms() - begin >= TIMEOUT_MS / 2,
		   "it failed after %d ms, before the peer's time was over",
		   (int)(now_ms() - begin));
	kill(s->peer_pid, SIGKILL);
	kill(s->peer_pid, SIGCONT);
	node_close(s, &s->node);
}

static void stopped_run(struct side *s)
{
	uint8_t *in = mem_new(64);
	struct done d;

	node_open(s, &want_messages);
	while (node_again(s, fi_recv(s->node.ep, in, 64, NULL, FI_ADDR_UNSPEC, in),
			  "fi_recv"))
		;
	side_check(s, node_next(s, &d, WAIT_MS) && !d.err, "the first message is lost");
	side_meet(s);
	for (;;)
		node_progress(&s->node);
}

int main(int argc, char **argv)
{
	struct test_case silent = {.name = "a peer that is stopped is gone in time",
				   .run = {stopper_run, stopped_run},
				   .killed = true};
	const char *wire = getenv("FI_WEFT_WIRE");

	test_init(argc, argv);
	setenv("FI_WEFT_UET_TIMEOUT", TIMEOUT, 1);
	if (!wire || strcmp(wire, "uet") != 0)
		silent.skip = "FI_WEFT_WIRE isn't uet";
	cases_run(&silent, 1, "");
	return test_done();
}
