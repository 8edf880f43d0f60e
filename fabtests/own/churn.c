/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients that come and go, eight at a time, against one server: some close in order,
 * some are killed in the middle, some are stopped first and killed then. The server must
 * serve all the others, every operation must end, and what the server holds (memory,
 * mappings, descriptors, threads) must stay the same whatever the number of clients was.
 *
 * --count N clients (the short form of make check otherwise).
 */
#include "config.h"

#include "fabtests/own/churn.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/tap.h"

#define CLIENTS_SHORT 60
#define CLIENT_MS     40000
#define STEPS_SHORT   6
#define STEPS_WARM    2 /* of these */

/* What may be more at the end than after the warm-up, if it grows steadily. A leak per
 * client is far above. */
#define HEAP_MORE  65536
#define PAGES_MORE 128 /* KiB: a page per client is more */
#define MAPS_MORE  4

/* A client that runs. */
struct guest {
	struct churn_job job;
	pid_t pid; /* 0: nobody */
	int sock;
	bool busy;    /* it said that it is in the middle */
	bool stopped; /* SIGSTOP was sent */
	bool killed;  /* SIGKILL was sent */
	uint64_t due; /* the next of these, once busy */
	uint64_t end; /* deadline */
};

struct churn {
	struct soak k;
	struct churn_place place;
	int server; /* its socket */
	pid_t server_pid;
	struct guest guests[CHURN_CLIENTS];
	int bad;
	int ends[ENDS];
	struct soak_use use[SOAK_MEASURES];
	int uses;
	int step; /* clients between two of them */
};

/* ---- the server */

static void server_start(struct churn *c)
{
	struct side s;

	c->server_pid = soak_fork(&s, &c->server);
	if (c->server_pid == 0) {
		/* Whoever is called after its death is called in vain, so long. Clients
		 * call the server, which is there, however late it answers. */
		setenv("FI_WEFT_CONNECT_TIMEOUT", "1000", 0);
		churn_server(&s);
		exit(s.failed ? 1 : 0);
	}
	if (recv(c->server, &c->place, sizeof(c->place), MSG_WAITALL) !=
	    (ssize_t)sizeof(c->place))
		tap_bail("no server");
}

static void server_word(struct churn *c, struct churn_word word)
{
	if (send(c->server, &word, sizeof(word), MSG_NOSIGNAL) != (ssize_t)sizeof(word))
		tap_bail("the server is gone");
}

static void server_measure(struct churn *c, int clients)
{
	struct soak_use *use = &c->use[c->uses];
	long fds = c->uses ? c->use[0].fds : 0;

	if (c->uses == SOAK_MEASURES)
		return;
	server_word(c, (struct churn_word){.order = ORDER_MEASURE, .fds = fds});
	if (recv(c->server, use, sizeof(*use), MSG_WAITALL) != (ssize_t)sizeof(*use))
		tap_bail("the server is gone");
	c->uses++;
	tap_diag("after %d: pages %ld KiB, heap %ld bytes, %ld mappings, %ld "
		 "descriptors, %ld threads",
		 clients, use->held_kb, use->heap, use->maps, use->fds, use->threads);
}

/* ---- clients */

static void guest_start(struct churn *c, struct guest *g, int number)
{
	struct side s;

	*g = (struct guest){.end = now_ms() + CLIENT_MS};
	/* The place in the stripes is that of the guest. */
	g->job.id = number * CHURN_CLIENTS + (int)(g - c->guests) + 1;
	g->job.use = (enum churn_use)soak_random(&c->k, USES);
	g->job.end = (enum churn_end)soak_random(&c->k, ENDS);
	g->due = soak_random(&c->k, 30);
	c->ends[g->job.end]++;
	g->pid = soak_fork(&s, &g->sock);
	if (g->pid == 0) {
		close(c->server);
		for (int i = 0; i < CHURN_CLIENTS; i++)
			if (c->guests[i].pid > 0)
				close(c->guests[i].sock);
		churn_client(&s, &g->job, &c->place);
		exit(s.failed ? 1 : 0);
	}
}

/* Stops or kills it where that is due. */
static void guest_push(struct churn *c, struct guest *g)
{
	struct pollfd p = {.fd = g->sock, .events = POLLIN};
	char byte;

	if (now_ms() > g->end && !g->killed) {
		tap_diag("client %d (use %d, end %d) has no end", g->job.id, g->job.use,
			 g->job.end);
		c->bad++;
		g->killed = kill(g->pid, SIGKILL) == 0;
		return;
	}
	if (!g->busy) {
		if (poll(&p, 1, 0) != 1 || read(g->sock, &byte, 1) != 1)
			return;
		g->busy = true;
		g->due += now_ms();
	}
	if (g->job.end == END_ORDER || g->killed || now_ms() < g->due)
		return;
	if (g->job.end == END_STOP && !g->stopped) {
		g->stopped = kill(g->pid, SIGSTOP) == 0;
		g->due = now_ms() + 20 + soak_random(&c->k, 100);
		return;
	}
	g->killed = kill(g->pid, SIGKILL) == 0;
}

/* True when it is gone. */
static bool guest_ended(struct churn *c, struct guest *g)
{
	int status;

	if (waitpid(g->pid, &status, WNOHANG) != g->pid)
		return false;
	if (g->killed ? !WIFSIGNALED(status) : status != 0) {
		tap_diag("client %d (use %d, end %d): status 0x%x", g->job.id, g->job.use,
			 g->job.end, status);
		c->bad++;
	}
	close(g->sock);
	g->pid = 0;
	server_word(c, (struct churn_word){.order = ORDER_DEAD, .id = g->job.id});
	return true;
}

/* That many come and go; then nobody is there. */
static void clients_run(struct churn *c, int first, int count)
{
	int next = 0, gone = 0;

	while (gone < count) {
		for (int i = 0; i < CHURN_CLIENTS; i++) {
			struct guest *g = &c->guests[i];

			if (g->pid == 0 && next < count)
				guest_start(c, g, first + next++);
			if (g->pid == 0)
				continue;
			guest_push(c, g);
			gone += guest_ended(c, g);
		}
		sleep_ms(1);
	}
}

/* ---- judging */

static void judge(struct churn *c)
{
	/* use[0] is from before the first client. */
	const struct soak_use *none = &c->use[0], *last = &c->use[c->uses - 1];
	int warm = c->uses > STEPS_WARM + 1 ? STEPS_WARM : c->uses - 1;
	struct soak_use more = soak_growth(&c->use[warm], c->uses - warm);

	tap_is_int(c->bad, 0, "clients that ended otherwise than they should");
	tap_is_int(last->fds, none->fds, "descriptors as before the first client");
	tap_is_int(last->threads, none->threads, "threads as before");
	if (!soak_is_exact(last)) {
		tap_skip(3, "memory: a sanitizer keeps what is freed");
		return;
	}
	tap_diag("steadily more since %d clients: pages %ld KiB, heap %ld bytes, %ld "
		 "mappings",
		 warm * c->step, more.held_kb, more.heap, more.maps);
	tap_ok(more.maps <= MAPS_MORE, "mappings as after the warm-up");
	tap_ok(more.heap <= HEAP_MORE, "heap as after the warm-up");
	tap_ok(more.held_kb <= PAGES_MORE, "memory as after the warm-up");
}

int main(int argc, char **argv)
{
	static struct churn c;
	int status = -1;

	test_init(argc, argv);
	soak_init(&c.k, argc, argv, tap_short() ? CLIENTS_SHORT / 2 : CLIENTS_SHORT);
	c.step = c.k.count >= 100 * STEPS_SHORT
			 ? 100
			 : (c.k.count + STEPS_SHORT - 1) / STEPS_SHORT;
	server_start(&c);
	server_measure(&c, 0);
	for (int done = 0; done < c.k.count; done += c.step) {
		int left = c.k.count - done;

		clients_run(&c, done, left < c.step ? left : c.step);
		server_measure(&c, left < c.step ? c.k.count : done + c.step);
	}
	tap_diag("%d clients: %d closed, %d killed, %d stopped and killed", c.k.count,
		 c.ends[END_ORDER], c.ends[END_KILL], c.ends[END_STOP]);
	judge(&c);
	server_word(&c, (struct churn_word){.order = ORDER_QUIT});
	waitpid(c.server_pid, &status, 0);
	tap_is_int(status, 0, "the server closes everything and has seen nothing wrong");
	return tap_done();
}
