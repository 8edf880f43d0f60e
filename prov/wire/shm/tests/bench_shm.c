/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Figures of the shared-memory wire, not a test:
 *   bench_shm            half round trip of packets between two processes, put bandwidth
 *   bench_shm self N     N packets to self; under callgrind, instructions per packet
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "prov/wire/shm/shm.h"
#include "prov/wire/shm/tests/rig.h"
#include "util/tap.h"

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Batches, since the machine is shared: the best and the middle one are told. */
static void bench_latency(struct rig *rig, size_t len)
{
	enum { BATCHES = 200, ROUNDS = 500 };
	uint8_t bytes[RIG_PACKET_MAX] = {0};
	struct server_packet req = {.op = SERVER_ECHO};
	uint64_t want = rig->packets;
	double ns[BATCHES];

	memcpy(bytes, &req, sizeof(req));
	for (int b = 0; b < BATCHES; b++) {
		uint64_t begin = rig_now();

		for (int i = 0; i < ROUNDS; i++) {
			void *pkt =
				shm_wire_ops.pkt_reserve(rig->dialled, len, WIRE_DATA);

			if (!pkt)
				tap_bail("no room");
			memcpy(pkt, bytes, len);
			shm_wire_ops.pkt_commit(rig->dialled, pkt, len);
			want++;
			while (rig->packets < want)
				shm_wire_ops.progress(rig->ep, 64);
		}
		ns[b] = (double)(rig_now() - begin) / ROUNDS / 2;
	}
	qsort(ns, BATCHES, sizeof(ns[0]), compare_double);
	printf("packet %5zu B  half round trip  best %7.1f ns  median %8.1f ns\n", len,
	       ns[0], ns[BATCHES / 2]);
}

static void bench_put(struct rig *rig, size_t len)
{
	size_t rounds = (size_t)1 << (len > 65536 ? 9 : 14);
	uint8_t *buf = calloc(1, len);
	struct server_packet where;
	uint64_t begin;
	double ns;

	server_ask(rig, rig->dialled, SERVER_REGISTER, len, FI_REMOTE_WRITE);
	memcpy(&where, rig->last, sizeof(where));
	rig_put(rig, rig->dialled, buf, len, where.arg, where.arg2);
	begin = rig_now();
	for (size_t i = 0; i < rounds; i++)
		rig_put(rig, rig->dialled, buf, len, where.arg, where.arg2);
	ns = (double)(rig_now() - begin) / (double)rounds;
	printf("put  %8zu B  %10.1f ns  %8.1f MB/s\n", len, ns, (double)len / ns * 1000);
	free(buf);
}

static void bench_pair(bool no_cma)
{
	static const size_t packets[] = {8, 24, 64, 1024, 8192};
	static const size_t puts[] = {8, 4096, 65536, 1 << 20};
	struct server_packet quit = {.op = SERVER_QUIT};
	struct server srv;
	struct rig rig;

	printf("attach %s\n", no_cma ? "off" : "on");
	server_start(&srv, no_cma);
	rig_open(&rig, no_cma);
	if (rig_dial(&rig, &srv.addr))
		tap_bail("dial");
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]) && !no_cma; i++)
		bench_latency(&rig, packets[i]);
	for (size_t i = 0; i < sizeof(puts) / sizeof(puts[0]); i++)
		bench_put(&rig, puts[i]);
	rig_send(&rig, rig.dialled, &quit, sizeof(quit));
	server_wait(&srv);
	rig_close(&rig);
}

static bool count_packet(struct rig *rig, struct wire_link *link, const uint8_t *pkt,
			 size_t len)
{
	(void)rig;
	(void)link;
	(void)pkt;
	(void)len;
	return true;
}

static void bench_self(long count)
{
	struct rig rig;

	rig_open(&rig, false);
	rig.on_packet = count_packet;
	if (rig_dial(&rig, &wire_ep_base(rig.ep)->addr) ||
	    !rig_wait_int(&rig, &rig.ups, 2))
		tap_bail("dial");
	for (long i = 0; i < count; i++) {
		uint64_t *pkt = shm_wire_ops.pkt_reserve(rig.dialled, 8, WIRE_DATA);

		if (!pkt)
			tap_bail("no room");
		*pkt = (uint64_t)i;
		shm_wire_ops.pkt_commit(rig.dialled, pkt, 8);
		shm_wire_ops.progress(rig.ep, 64);
	}
	printf("packets to self: %llu\n", (unsigned long long)rig.packets);
	rig_close(&rig);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "self") == 0) {
		bench_self(atol(argv[2]));
		return 0;
	}
	bench_pair(false);
	bench_pair(true);
	return 0;
}
