/* SPDX-License-Identifier: BSD-2-Clause */
/* The option table and its reading; see params.h. */
#include "config.h"

#include "prov/mem/params.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * fi_version is the newest interface that is honoured: a smaller one hides the provider
 * from programs that were compiled for a newer libfabric. What newer versions added is
 * optional and not announced (see info_match.c for the hints that ask for it).
 */
struct fi_provider weft_provider = {
	.fi_version = FI_VERSION(2, 6),
	.name = "weft",
};

static const char *const words_cma[] = {"auto", "0", "1", NULL};
static const char *const words_mr_demand[] = {"none",	  "raw", "rma_event",
					      "endpoint", "all", NULL};
static const char *const words_monitor[] = {"auto", "userfaultfd", "disabled", NULL};
static const char *const words_wire[] = {"auto", "shm", "verbs", "uet", NULL};
static const char *const words_switch[] = {"auto", "off", "on", NULL};
static const char *const words_atomics[] = {"library", "native", NULL};
static const char *const words_checksum[] = {"auto", "always", NULL};
static const char *const words_bool[] = {"0", "1", NULL};

const struct prov_param prov_param_table[] = {
	{
		.name = "connect_timeout",
		.unit = "ms",
		.initial = 10000,
		.min = 1,
		.max = 3600 * 1000,
		.offset = offsetof(struct prov_params, connect_timeout_ms),
		.text = "how long an operation may wait for its peer's endpoint to "
			"answer, and a link for a way to its peer to come back",
	},
	{
		.name = "answer_time",
		.unit = "ms",
		.initial = PROV_ANSWER_TIME_MS,
		.min = 10,
		.max = 3600 * 1000,
		.offset = offsetof(struct prov_params, answer_time_ms),
		.text = "a queue pair to another host on which requests wait and none "
			"was answered for so long is taken for dead, where its device "
			"doesn't say so itself",
	},
	{
		.name = "stall_time",
		.unit = "ms",
		.initial = PROV_STALL_TIME_MS,
		.min = 0,
		.max = 3600 * 1000,
		.offset = offsetof(struct prov_params, stall_time_ms),
		.text = "when nothing under way to a peer on another host has ended for "
			"so long, what it waits for is logged as a warning; 0: never",
	},
	{
		.name = "eager_size",
		.unit = "bytes",
		.initial = 8192,
		.min = 0,
		.max = 1 << 20,
		.offset = offsetof(struct prov_params, eager_size),
		.text = "messages up to this size are copied through packets; larger "
			"ones "
			"move straight between the two buffers",
	},
	{
		.name = "bulk_size",
		.unit = "bytes",
		.initial = PROV_BULK_SIZE,
		.min = 0,
		.max = (uint64_t)1 << 62,
		.offset = offsetof(struct prov_params, bulk_size),
		.text = "messages from this size on are copied by both processes at "
			"once, "
			"through shared slots; smaller ones above the eager size in one "
			"copy by the receiver",
	},
	{
		.name = "joint_size",
		.unit = "bytes",
		.initial = PROV_JOINT_SIZE,
		.min = 0,
		.max = (uint64_t)1 << 62,
		.offset = offsetof(struct prov_params, joint_size),
		.text = "messages from this size on are copied by both processes at "
			"once, straight between the two buffers, where the kernel allows "
			"cross-memory attach",
	},
	{
		.name = "cma",
		.words = words_cma,
		.initial = PROV_CMA_AUTO,
		.max = PROV_CMA_ON,
		.offset = offsetof(struct prov_params, cma),
		.text = "cross-memory attach (one copy between processes): auto tries it "
			"with each peer, 0 never uses it, 1 fails where it is refused",
	},
	{
		.name = "claim_remote",
		.words = words_bool,
		.initial = 0,
		.max = 1,
		.offset = offsetof(struct prov_params, claim_remote),
		.text = "announce FI_REMOTE_COMM although only peers on this host can be "
			"reached, for programs that insist on it and run on one host",
	},
	{
		.name = "mr_demand",
		.words = words_mr_demand,
		.initial = PROV_MR_NOTHING,
		.max = PROV_MR_ALL,
		.offset = offsetof(struct prov_params, mr_demand),
		.text = "registration modes (FI_MR_RAW, FI_MR_RMA_EVENT, "
			"FI_MR_ENDPOINT) that are demanded and enforced although nothing "
			"here needs them, to try programs that must run where something "
			"does",
	},
	{
		.name = "mr_cache_max_count",
		.initial = PROV_MR_CACHE_COUNT,
		.max = 1 << 20,
		.offset = offsetof(struct prov_params, mr_cache_max_count),
		.text = "local registrations that a wire which needs them keeps for each "
			"endpoint; 0 keeps none",
	},
	{
		.name = "mr_cache_max_size",
		.unit = "bytes",
		.initial = PROV_MR_CACHE_SIZE,
		.max = (uint64_t)1 << 62,
		.offset = offsetof(struct prov_params, mr_cache_max_size),
		.text = "memory of all local registrations that are kept for one "
			"endpoint",
	},
	{
		.name = "mr_cache_monitor",
		.words = words_monitor,
		.initial = PROV_MONITOR_AUTO,
		.max = PROV_MONITOR_DISABLED,
		.offset = offsetof(struct prov_params, mr_cache_monitor),
		.text = "how kept registrations hear of memory that goes away; where "
			"there is no way, or it is disabled, none are kept",
	},
	{
		.name = "shm",
		.words = words_bool,
		.initial = 1,
		.max = 1,
		.offset = offsetof(struct prov_params, shm),
		.text = "peers on this host are reached by shared memory; 0 leaves them "
			"to the wire that reaches other hosts, and must be the same in "
			"all processes",
	},
	{
		.name = "wire",
		.words = words_wire,
		.initial = PROV_WIRE_AUTO,
		.max = PROV_WIRE_UET,
		.offset = offsetof(struct prov_params, wire),
		.text = "which entries fi_getinfo has: auto all that can be used, shm "
			"the one of this host alone, verbs those of RDMA devices, uet "
			"the one over UDP, which is never there by itself",
	},
	{
		.name = "rails",
		.absent = "all",
		.offset = offsetof(struct prov_params, rails),
		.text = "devices for peers on other hosts: all, names as in "
			"mlx5_0,mlx5_1, in whose order they are used, or all but some as "
			"in ^mlx5_2",
	},
	{
		.name = "lanes",
		.absent = "by distance",
		.offset = offsetof(struct prov_params, lanes),
		.text = "queue pairs to each peer on another host, over all rails",
	},
	{
		.name = "profile",
		.absent = "built in",
		.offset = offsetof(struct prov_params, profile),
		.text = "how transfers to other hosts are spread, by distance: "
			"CLASS:KEY=VALUE,...;...",
	},
	{
		.name = "numbered",
		.words = words_bool,
		.initial = 0,
		.max = 1,
		.offset = offsetof(struct prov_params, numbered),
		.text = "every write to another host is done when its target has heard "
			"of it, and is not written again after that, for programs that "
			"poll memory; must be the same in all processes",
	},
	{
		.name = "fabric_map",
		.absent = "none",
		.offset = offsetof(struct prov_params, fabric_map),
		.text = "file that says where hosts stand and on which rails they are",
	},
	{
		.name = "fabric_host",
		.absent = "the host's name",
		.offset = offsetof(struct prov_params, fabric_host),
		.text = "this host's name in the fabric map",
	},
	{
		.name = "gid_index",
		.absent = "chosen",
		.offset = offsetof(struct prov_params, gid_index),
		.text = "which GID of each device is used",
	},
	{
		.name = "auth_key",
		.secret = true,
		.absent = "none",
		.offset = offsetof(struct prov_params, auth_key),
		.text = "16 to 1024 characters that peers on other hosts must have too",
	},
	{
		.name = "pkey_index",
		.initial = 0,
		.min = 0,
		.max = 65535,
		.offset = offsetof(struct prov_params, pkey_index),
		.text = "which partition key of each device is used",
	},
	{
		.name = "service_level",
		.initial = 0,
		.min = 0,
		.max = 15,
		.offset = offsetof(struct prov_params, service_level),
		.text = "service level of packets to other hosts",
	},
	{
		.name = "hop_limit",
		.initial = 64,
		.min = 1,
		.max = 255,
		.offset = offsetof(struct prov_params, hop_limit),
		.text = "routers that a packet to another host may pass",
	},
	{
		.name = "verbs_atomics",
		.words = words_atomics,
		.initial = PROV_ATOMICS_LIBRARY,
		.max = PROV_ATOMICS_NATIVE,
		.offset = offsetof(struct prov_params, verbs_atomics),
		.text = "who carries out atomic operations over RDMA devices: the "
			"target's library does all of them, native lets the target's "
			"device do 64-bit sum and compare-and-swap, and there are no "
			"others then; wants one rail and FI_WEFT_SHM=0",
	},
	{
		.name = "verbs_ooo",
		.words = words_switch,
		.initial = PROV_OOO_AUTO,
		.max = PROV_OOO_ON,
		.offset = offsetof(struct prov_params, verbs_ooo),
		.text = "queue pairs that place data out of order, so that switches can "
			"spread their packets: auto uses them where both ends can, on "
			"fails where this host can't",
	},
	{
		.name = "uet_checksum",
		.words = words_checksum,
		.initial = PROV_CHECKSUM_AUTO,
		.max = PROV_CHECKSUM_ALWAYS,
		.offset = offsetof(struct prov_params, uet_checksum),
		.text = "which datagrams have a checksum, where none is sealed: auto "
			"leaves it out between processes of one host",
	},
	{
		.name = "uet_key",
		.secret = true,
		.absent = "none",
		.offset = offsetof(struct prov_params, uet_key),
		.text = "what the wire over UDP encrypts everything with: 16 to 1024 "
			"characters, or 64 hexadecimal digits, the same in all processes",
	},
	{
		.name = "uet_paths",
		.initial = PROV_UET_PATHS,
		.min = 1,
		.max = PROV_UET_PATHS_MAX,
		.offset = offsetof(struct prov_params, uet_paths),
		.text = "source ports of an endpoint over UDP, by which switches spread "
			"its packets over their links",
	},
	{
		.name = "uet_rails",
		.absent = "one",
		.offset = offsetof(struct prov_params, uet_rails),
		.text = "interfaces over which an endpoint over UDP spreads its packets, "
			"by name or address, as in eth0,eth1",
	},
	{
		.name = "uet_timeout",
		.unit = "ms",
		.initial = PROV_UET_TIMEOUT_MS,
		.min = 1000,
		.max = 3600 * 1000,
		.offset = offsetof(struct prov_params, uet_timeout_ms),
		.text = "how long a peer over UDP may say nothing before it is taken for "
			"gone",
	},
	{
		.name = "uet_shim",
		.absent = "none",
		.offset = offsetof(struct prov_params, uet_shim),
		.text = "for tests: a bad network for the wire over UDP, as in "
			"seed=1,drop=0.01,reorder=0.1:500",
	},
	{
		.name = "verbs_fork",
		.words = words_switch,
		.initial = PROV_FORK_AUTO,
		.max = PROV_FORK_ON,
		.offset = offsetof(struct prov_params, verbs_fork),
		.text = "that a fork leaves memory alone which RDMA devices write: auto "
			"sees to it where it can, on fails where it can't, off leaves it "
			"to the program",
	},
};
const size_t prov_param_count = sizeof(prov_param_table) / sizeof(prov_param_table[0]);

/* Written by prov_params_init only, which libfabric calls before anything else. */
static struct prov_params params = {
	.connect_timeout_ms = 10000,
	.answer_time_ms = PROV_ANSWER_TIME_MS,
	.stall_time_ms = PROV_STALL_TIME_MS,
	.eager_size = 8192,
	.bulk_size = PROV_BULK_SIZE,
	.joint_size = PROV_JOINT_SIZE,
	.cma = PROV_CMA_AUTO,
	.claim_remote = 0,
	.mr_cache_max_count = PROV_MR_CACHE_COUNT,
	.mr_cache_max_size = PROV_MR_CACHE_SIZE,
	.uet_paths = PROV_UET_PATHS,
	.uet_timeout_ms = PROV_UET_TIMEOUT_MS,
	.shm = 1,
	.hop_limit = 64,
};

const struct prov_params *prov_params(void)
{
	return &params;
}

static bool parse_number(const char *text, uint64_t *value)
{
	char *end;
	unsigned long long v;

	/* strtoull takes signs and blanks: an option doesn't. */
	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	v = strtoull(text, &end, 0);
	if (errno || *end)
		return false;
	*value = v;
	return true;
}

bool prov_param_parse(const struct prov_param *row, const char *text, uint64_t *value)
{
	uint64_t v;

	if (row->words) {
		for (v = 0; row->words[v]; v++) {
			if (strcmp(row->words[v], text) == 0) {
				*value = v;
				return true;
			}
		}
		return false;
	}
	if (!parse_number(text, &v) || v < row->min || v > row->max)
		return false;
	*value = v;
	return true;
}

/* "auto, 0, 1" or "1 to 3600000 ms". */
static void row_range(const struct prov_param *row, char *out, size_t size)
{
	size_t at = 0;

	if (!row->words) {
		snprintf(out, size, "%llu to %llu%s%s", (unsigned long long)row->min,
			 (unsigned long long)row->max, row->unit ? " " : "",
			 row->unit ? row->unit : "");
		return;
	}
	out[0] = '\0';
	for (size_t i = 0; row->words[i] && at < size; i++)
		at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "",
				       row->words[i]);
}

static void row_initial(const struct prov_param *row, char *out, size_t size)
{
	if (row->words)
		snprintf(out, size, "%s", row->words[row->initial]);
	else
		snprintf(out, size, "%llu", (unsigned long long)row->initial);
}

static uint64_t row_read(const struct prov_param *row)
{
	char range[96], initial[32];
	uint64_t value = row->initial;
	char *text = NULL;

	row_range(row, range, sizeof(range));
	row_initial(row, initial, sizeof(initial));
	fi_param_define(&weft_provider, row->name, FI_PARAM_STRING,
			"%s (%s; default: %s)", row->text, range, initial);
	if (fi_param_get_str(&weft_provider, row->name, &text) || !text)
		return value;
	if (!prov_param_parse(row, text, &value))
		FI_WARN(&weft_provider, FI_LOG_CORE,
			"option %s: \"%s\" is not one of: %s; using the default, %s\n",
			row->name, text, range, initial);
	return value;
}

/* libfabric logs what it reads. */
static const char *secret_read(const struct prov_param *row)
{
	char name[64] = "FI_WEFT_";
	const char *text;
	size_t at = strlen(name);

	for (const char *c = row->name; *c && at < sizeof(name) - 1; c++)
		name[at++] = (char)toupper((unsigned char)*c);
	text = getenv(name);
	return text && text[0] ? strdup(text) : NULL;
}

/* A copy: what the environment holds may change. It lasts as long as the process. */
static const char *text_read(const struct prov_param *row)
{
	char *text = NULL;

	fi_param_define(&weft_provider, row->name, FI_PARAM_STRING, "%s (default: %s)",
			row->text, row->absent);
	if (row->secret)
		return secret_read(row);
	if (fi_param_get_str(&weft_provider, row->name, &text) || !text || !text[0])
		return NULL;
	return strdup(text);
}

static void text_take(const struct prov_param *row)
{
	const char **field = (const char **)((char *)&params + row->offset);

	if (!*field)
		*field = text_read(row);
}

void prov_params_init(void)
{
	for (size_t i = 0; i < prov_param_count; i++) {
		const struct prov_param *row = &prov_param_table[i];
		uint64_t value;

		if (row->absent) {
			text_take(row);
			continue;
		}
		value = row_read(row);
		memcpy((char *)&params + row->offset, &value, sizeof(value));
	}
}
