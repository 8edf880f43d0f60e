/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * topo/sim/incast: many hosts write to one, on two tiers of switches: what the switches
 * hold at most, and how long it takes, when all that is to be written is handed to the
 * network at once, with the limits of the transmit machine's profile for other racks, and
 * with those that are asked for.
 */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prov/dqplb/profile.h"
#include "topo/draw/plot.h"
#include "topo/sim/queue.h"

enum { LEAF = 16, SPINES = 16 };

#define RATE	(400e9 / 8)
#define LATENCY 1e-6
#define MIB	(UINT64_C(1) << 20)

struct ask {
	uint32_t senders;
	uint64_t bytes, link, segment, buffer;
	const char *svg;
};

enum { WITHOUT, PROFILE, LIMITED, WAYS };

static const char *const way_name[WAYS] = {"no limits", "profile", "limits"};

static struct dqplb_tx_config config_of(const struct ask *ask, int way)
{
	struct dqplb_profiles all;
	struct dqplb_tx_config c;

	dqplb_profiles_init(&all);
	dqplb_profile_tx(&all.row[FABRIC_OTHER_RACK], 1, &c);
	if (way == PROFILE)
		return c;
	c.window = 16384;
	c.max_segment = (uint32_t)ask->segment;
	c.lane_segments = 1024;
	c.small = 0;
	c.lane_bytes = c.link_bytes = way == WITHOUT ? UINT64_C(1) << 40 : ask->link;
	if (way == WITHOUT)
		c.max_segment = 1 << 20;
	return c;
}

static int bytes_parse(const char *text, uint64_t *bytes)
{
	char *end;
	unsigned long long v = strtoull(text, &end, 10);
	const unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;

	end += shift > 0;
	if (*text < '0' || *text > '9' || *end || !v || v > UINT64_C(1) << 20)
		return -EINVAL;
	*bytes = (uint64_t)v << shift;
	return 0;
}

static int usage(const char *what, const char *value)
{
	if (what)
		fprintf(stderr, "incast: %s%s%s\n", what, value ? ": " : "",
			value ? value : "");
	fprintf(stderr,
		"usage: incast [--senders N] [--bytes B] [--link B] [--segment B] "
		"[--buffer B] [--svg FILE]\n"
		"N (32; 1 to 1000) hosts write B (64M; up to 1G) each to one host; "
		"--link "
		"and --segment\n"
		"(1M, 64K): the limits that are compared; --buffer: bytes of a queue "
		"(without end)\n");
	return 2;
}

static int args(struct ask *ask, int argc, char **argv)
{
	static const struct option longs[] = {{"senders", required_argument, NULL, 'n'},
					      {"bytes", required_argument, NULL, 'b'},
					      {"link", required_argument, NULL, 'l'},
					      {"segment", required_argument, NULL, 's'},
					      {"buffer", required_argument, NULL, 'q'},
					      {"svg", required_argument, NULL, 'v'},
					      {NULL, 0, NULL, 0}};
	uint64_t senders = ask->senders;
	int opt, rc = 0;

	while (!rc && (opt = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		if (opt == 'v')
			ask->svg = optarg;
		else if (opt == '?')
			return usage(NULL, NULL);
		else
			rc = bytes_parse(optarg, opt == 'n'   ? &senders
						 : opt == 'b' ? &ask->bytes
						 : opt == 'l' ? &ask->link
						 : opt == 's' ? &ask->segment
							      : &ask->buffer);
		if (rc)
			return usage("no such number", optarg);
	}
	if (optind < argc)
		return usage("one too many", argv[optind]);
	if (senders > 1000 || ask->bytes > 1024 * MIB || ask->segment > 1024 * MIB ||
	    (ask->buffer && ask->buffer < 4096))
		return usage("a number is too large, or the buffer too small", NULL);
	ask->senders = (uint32_t)senders;
	return 0;
}

static int svg_write(const struct ask *ask, const struct queue_result *r)
{
	static struct plot plot = {.title = "Incast: bytes in switches",
				   .x = "milliseconds",
				   .y = "MiB",
				   .linear_x = true,
				   .linear_y = true};
	FILE *file = fopen(ask->svg, "we");
	bool good = file;

	for (int way = 0; way < WAYS; way++) {
		struct plot_curve *c = plot_curve(&plot, way_name[way]);

		for (unsigned i = 0; c && i < QUEUE_SAMPLES; i++)
			plot_point(c, (i + 0.5) * r[way].sample_time * 1e3,
				   (double)r[way].sample[i] / MIB);
	}
	good = good && plot_write(&plot, file);
	if (file && fclose(file))
		good = false;
	if (!good)
		fprintf(stderr, "incast: %s cannot be written\n", ask->svg);
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct ask ask = {
		.senders = 32, .bytes = 64 * MIB, .link = MIB, .segment = 65536};
	int status = args(&ask, argc, argv);
	const struct queue_net net = {.hosts = LEAF + ask.senders,
				      .per_leaf = LEAF,
				      .spines = SPINES,
				      .rate = RATE,
				      .latency = LATENCY,
				      .packet = 4096,
				      .buffer = ask.buffer,
				      .mark = 1 * MIB};
	struct queue_result r[WAYS];

	if (status)
		return status;
	printf("%u hosts write %.1f MiB each to one; 400 Gb/s, two tiers, %u hosts a "
	       "leaf\n",
	       ask.senders, (double)ask.bytes / MIB, LEAF);
	printf("%-10s %14s %14s %12s %10s %10s\n", "way", "peak MiB", "one queue MiB",
	       "time us", "packets", "marked");
	for (int way = 0; way < WAYS; way++) {
		const struct queue_incast in = {.senders = ask.senders,
						.bytes = ask.bytes,
						.tx = config_of(&ask, way)};
		int rc;

		r[way].sample_time =
			(double)ask.bytes * ask.senders / RATE * 1.05 / QUEUE_SAMPLES;
		rc = queue_incast(&net, &in, &r[way]);
		if (rc) {
			fprintf(stderr, "incast: %s: %s\n", way_name[way], strerror(-rc));
			return 1;
		}
		printf("%-10s %14.2f %14.2f %12.1f %10llu %10llu\n", way_name[way],
		       (double)r[way].peak / MIB, (double)r[way].queue / MIB,
		       r[way].time * 1e6, (unsigned long long)r[way].packets,
		       (unsigned long long)r[way].marked);
	}
	if (ask.svg && svg_write(&ask, r))
		return 1;
	printf("incast: peak %.1f times lower with limits, completion %+.2f %%\n",
	       (double)r[WITHOUT].peak / (double)(r[LIMITED].peak ? r[LIMITED].peak : 1),
	       (r[LIMITED].time / r[WITHOUT].time - 1) * 100);
	return 0;
}
