/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Address vectors that processes share by a name: what one inserts the other sends to,
 * by the same handle; read only is read only; nothing is left of a name whose maker was
 * killed. Who sends is known by the shared handle.
 *
 * Role 1 makes the vector, role 0 opens it.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct want want_shared = {.caps = FI_MSG | FI_TAGGED | FI_SOURCE |
						FI_SHARED_AV};

/* A node with an endpoint whose vector is the shared one; s->node.av is that. */
static int shared_open(struct side *s, const char *name, uint64_t flags,
		       enum fi_av_type type, void **map)
{
	struct fi_av_attr attr = {.type = type, .name = name, .flags = flags};
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
	struct node *n = &s->node;
	int rc;

	node_open_av(s, n, &want_shared);
	side_check(s, (n->info->caps & FI_SHARED_AV) != 0, "it is not announced");
	side_must(s, fi_close(&n->av->fid), "fi_close av");
	n->av = NULL;
	rc = fi_av_open(n->domain, &attr, &n->av, NULL);
	if (rc)
		return rc;
	if (map)
		*map = attr.map_addr;
	side_must(s, fi_cq_open(n->domain, &cq, &n->cq, NULL), "fi_cq_open");
	side_must(s, fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(n->ep, &n->av->fid, 0), "bind av");
	side_must(s, fi_ep_bind(n->ep, &n->cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	side_must(s, fi_enable(n->ep), "fi_enable");
	n->name_len = sizeof(n->name);
	side_must(s, fi_getname(&n->ep->fid, n->name, &n->name_len), "fi_getname");
	return 0;
}

static void name_get(struct side *s, char name[64])
{
	memset(name, 0, 64);
	if (s->role == 1) {
		snprintf(name, 64, "own test %d", (int)getpid());
		return;
	}
	side_hear(s, name, 64);
}

static void read_maker(struct side *s)
{
	char name[64], other[64] = {0}, mem[8];
	fi_addr_t h[3];
	struct done d;

	name_get(s, name);
	side_must(s, shared_open(s, name, 0, FI_AV_MAP, NULL), "fi_av_open");
	side_tell(s, name, sizeof(name));
	side_hear(s, other, sizeof(other));
	if (fi_av_insert(s->node.av, s->node.name, 1, &h[0], 0, NULL) != 1 ||
	    fi_av_insert(s->node.av, other, 1, &h[1], 0, NULL) != 1 ||
	    fi_av_insert(s->node.av, other, 1, &h[2], 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_tell(s, h, sizeof(h));
	side_must(s, fi_recv(s->node.ep, mem, 8, NULL, FI_ADDR_UNSPEC, mem), "recv");
	node_expect(s, &d, FI_MSG | FI_RECV, mem);
	side_check_u64(s, d.src, h[1], "who sent it");
	side_must(s, fi_send(s->node.ep, mem, 8, NULL, h[1], mem), "send");
	node_expect(s, &d, FI_MSG | FI_SEND, mem);
	side_meet(s);
	side_must(s, fi_av_remove(s->node.av, &h[0], 1, 0), "fi_av_remove");
	side_meet(s);
	side_meet(s);
	node_close(s, &s->node);
}

static void read_reader(struct side *s)
{
	char name[64], own[64] = {0}, mem[8] = "message";
	struct node *n = &s->node;
	size_t len = sizeof(own);
	fi_addr_t h[3];
	struct done d;
	void *map;

	name_get(s, name);
	side_must(s, shared_open(s, name, FI_READ, FI_AV_MAP, &map), "fi_av_open");
	side_check(s, fi_av_lookup(n->av, 0, own, &len) < 0, "it is not empty");
	memset(own, 0, sizeof(own));
	memcpy(own, n->name, n->name_len);
	side_tell(s, own, sizeof(own));
	side_hear(s, h, sizeof(h));
	for (int i = 0; map && i < 3; i++)
		side_check_u64(s, ((fi_addr_t *)map)[i], h[i], "handle at map_addr");
	side_check(s, fi_av_insert(n->av, own, 1, &h[2], 0, NULL) == -FI_EACCES,
		   "insert");
	side_check(s, fi_av_remove(n->av, &h[0], 1, 0) == -FI_EACCES, "remove");
	side_must(s, fi_recv(n->ep, mem, 8, NULL, FI_ADDR_UNSPEC, mem), "recv");
	side_must(s, fi_inject(n->ep, "message", 8, h[0]), "inject");
	node_expect(s, &d, FI_MSG | FI_RECV, mem);
	side_check_u64(s, d.src, h[0], "who sent it");
	len = sizeof(own);
	side_must(s, fi_av_lookup(n->av, h[0], own, &len), "fi_av_lookup");
	side_meet(s);
	side_meet(s);
	side_check(s, fi_av_lookup(n->av, h[0], own, &len) == -FI_EINVAL,
		   "what was removed is found");
	side_check(s, fi_inject(n->ep, "message", 8, h[0]) == -FI_EINVAL,
		   "what was removed is sent to");
	side_must(s, fi_av_lookup(n->av, h[1], own, &len), "the other is still there");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- both write */

static void write_run(struct side *s)
{
	char name[64], mem[8] = "message";
	struct node *n = &s->node;
	fi_addr_t mine, theirs;
	struct done d;

	name_get(s, name);
	side_must(s, shared_open(s, name, 0, FI_AV_TABLE, NULL), "fi_av_open");
	if (s->role == 1)
		side_tell(s, name, sizeof(name));
	/* Each inserts itself only. */
	if (fi_av_insert(n->av, n->name, 1, &mine, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_tell(s, &mine, sizeof(mine));
	side_hear(s, &theirs, sizeof(theirs));
	side_check(s, mine != theirs, "a handle twice");
	side_must(s, fi_recv(n->ep, mem, 8, NULL, FI_ADDR_UNSPEC, mem), "recv");
	side_must(s, fi_inject(n->ep, "message", 8, theirs), "inject");
	node_expect(s, &d, FI_MSG | FI_RECV, mem);
	side_check_u64(s, d.src, theirs, "who sent it");
	side_meet(s);
	node_close(s, n);
}

/* ---- who made it is killed */

static void kill_maker(struct side *s)
{
	char name[64];
	fi_addr_t h;

	name_get(s, name);
	side_must(s, shared_open(s, name, 0, FI_AV_TABLE, NULL), "fi_av_open");
	if (fi_av_insert(s->node.av, s->node.name, 1, &h, 0, NULL) != 1)
		side_die(s, "fi_av_insert");
	side_tell(s, name, sizeof(name));
	for (;;)
		pause();
}

static void kill_other(struct side *s)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE, .flags = FI_READ};
	char name[64], addr[64];
	struct node *n = &s->node;
	size_t len = sizeof(addr);
	struct fid_av *again;
	fi_addr_t h;

	name_get(s, name);
	side_must(s, shared_open(s, name, 0, FI_AV_TABLE, NULL), "fi_av_open");
	kill(s->peer_pid, SIGKILL);
	attr.name = name;
	for (int i = 0; i < 1000; i++) { /* it dies in its own time */
		int rc = fi_av_open(n->domain, &attr, &again, NULL);

		if (rc == -FI_ENOENT)
			break;
		if (rc == 0)
			side_must(s, fi_close(&again->fid), "fi_close");
		side_check(s, rc == 0 || rc == -FI_ETIMEDOUT, "fi_av_open: %d", rc);
		side_check(s, i < 999, "the name outlives its maker");
		sleep_ms(10);
	}
	side_must(s, fi_av_lookup(n->av, 0, addr, &len), "who has it keeps it");
	side_check(s, fi_av_insert(n->av, n->name, 1, &h, 0, NULL) == 1 && h == 1,
		   "and goes on");
	attr.flags = 0;
	side_must(s, fi_av_open(n->domain, &attr, &again, NULL), "made again");
	side_check(s, fi_av_lookup(again, 0, addr, &len) < 0, "it is not empty");
	side_must(s, fi_close(&again->fid), "fi_close");
	node_close(s, n);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "one writes", .run = {read_reader, read_maker}},
		{.name = "both write", .run = {write_run, write_run}},
		{.name = "its maker is killed",
		 .run = {kill_other, kill_maker},
		 .killed = true},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
