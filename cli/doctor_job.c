/* SPDX-License-Identifier: BSD-2-Clause */
/* weft doctor: what ranks find out together. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/perf.h"
#include "coll/comm/measure.h"
#include "topo/host/host.h"

enum {
	CLOCK_TRIPS = 16, /* messages there and back for each rank's clock */
	COPIES = 8,	  /* of memory, of which the fastest counts */
};

#define COPY_BYTES   (4 << 20)
#define CLOCK_FAR_US 1000 /* recorders of ranks would be put in a wrong order */

/* Limits of what is still good. A machine that does other things reaches them, too: they
 * make a warning. */
#define MODEL_TIMES  3.0  /* measured, of what the model says */
#define MODEL_US     20.0 /* and so much more at least */
#define CHOICE_TIMES 1.25 /* chosen, of the best */
#define CHOICE_US    2.0
#define PART_OF_COPY 0.25 /* a message on one host, of a copy */
#define PART_OF_NIC  0.5  /* between hosts, of the NIC's rate */

/* Bytes of the vector. */
static const uint64_t sizes[] = {8, 64 << 10, 4 << 20};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

struct job {
	const struct doctor_opts *opts;
	struct perf perf;
	struct perf_opts perf_opts;
	struct findings *sets;	/* rank 0: of the ranks, then of all together */
	struct findings *found; /* rank 0: the last of them, else one that nobody sees */
	struct findings unseen;
	struct cost_terms terms;
	int hosts;
};

static int64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool failed(struct findings *own, const char *what)
{
	findings_add(own, LEVEL_FAIL, what, NULL, "%.300s", weft_error_detail());
	return false;
}

/* ---- who takes part ---------------------------------------------------------------- */

/* How many of sets[0..n) are of that host. */
static int ranks_of(const struct findings *sets, int n, const char *host)
{
	int ranks = 0;

	for (int i = 0; i < n; i++)
		ranks += strncmp(sets[i].host, host, FINDING_HOST) == 0;
	return ranks;
}

static void ranks_judge(struct job *job)
{
	const int n = job->perf.size;
	char cure[FINDING_TEXT];

	for (int i = 0; i < n; i++) {
		const struct findings *set = &job->sets[i];

		job->sets[i].host[FINDING_HOST - 1] = '\0';
		if (ranks_of(job->sets, i, set->host) > 0)
			continue;
		job->hosts++;
		if (set->cpus >= ranks_of(job->sets, n, set->host))
			continue;
		snprintf(cure, sizeof(cure),
			 "at most %" PRId32 " ranks on that host: they wait by looking",
			 set->cpus);
		findings_add(job->found, LEVEL_WARN, "ranks", cure,
			     "%.63s has %d ranks and %" PRId32 " CPUs", set->host,
			     ranks_of(job->sets, n, set->host), set->cpus);
	}
	findings_add(job->found, LEVEL_PASS, "ranks", NULL, "%d on %d host%s, over %s", n,
		     job->hosts, job->hosts == 1 ? "" : "s", job->perf.provider);
}

static bool ranks_gather(struct job *job, struct findings *own)
{
	struct perf *p = &job->perf;

	own->cpus = (int32_t)sysconf(_SC_NPROCESSORS_ONLN);
	job->found = &job->unseen;
	if (p->rank == 0) {
		job->sets = calloc((size_t)p->size + 1, sizeof(*job->sets));
		if (!job->sets) {
			findings_add(own, LEVEL_FAIL, "ranks", NULL, "no memory");
			return false;
		}
		job->found = &job->sets[p->size];
	}
	if (weft_gather(p->comm, own, job->sets, sizeof(*own), WEFT_UINT8, 0, NULL) !=
	    WEFT_SUCCESS)
		return failed(own, "ranks");
	if (p->rank == 0)
		ranks_judge(job);
	return true;
}

/* ---- clocks ------------------------------------------------------------------------ */

/* Rank 0: how far the rank's clock is ahead, by the quickest exchange. */
static enum weft_result clock_ask(struct weft_comm *comm, int32_t rank, int64_t *ahead_ns,
				  int64_t *trip_ns)
{
	enum weft_result result = WEFT_SUCCESS;
	int64_t there, begin, trip;

	*trip_ns = INT64_MAX;
	for (int k = 0; k < CLOCK_TRIPS && !result; k++) {
		begin = now_ns(CLOCK_REALTIME);
		result = weft_send(comm, &begin, 1, WEFT_INT64, rank, NULL);
		if (!result)
			result = weft_recv(comm, &there, 1, WEFT_INT64, rank, NULL);
		trip = now_ns(CLOCK_REALTIME) - begin;
		if (!result && trip < *trip_ns) {
			*trip_ns = trip;
			*ahead_ns = there - (begin + trip / 2);
		}
	}
	return result;
}

static enum weft_result clock_answer(struct weft_comm *comm)
{
	enum weft_result result = WEFT_SUCCESS;
	int64_t t;

	for (int k = 0; k < CLOCK_TRIPS && !result; k++) {
		result = weft_recv(comm, &t, 1, WEFT_INT64, 0, NULL);
		t = now_ns(CLOCK_REALTIME);
		if (!result)
			result = weft_send(comm, &t, 1, WEFT_INT64, 0, NULL);
	}
	return result;
}

static bool clocks(struct job *job, struct findings *own)
{
	struct perf *p = &job->perf;
	int64_t most = 0, exact = 0, ahead = 0, trip = 0;
	enum weft_result result = WEFT_SUCCESS;
	int32_t who = 0;

	if (p->rank)
		return clock_answer(p->comm) == WEFT_SUCCESS || failed(own, "clocks");
	for (int32_t r = 1; r < p->size && !result; r++) {
		result = clock_ask(p->comm, r, &ahead, &trip);
		if (!result && llabs(ahead) >= llabs(most)) {
			most = ahead;
			exact = trip / 2;
			who = r;
		}
	}
	if (result)
		return failed(own, "clocks");
	if (llabs(most) > CLOCK_FAR_US * INT64_C(1000) + exact)
		findings_add(job->found, LEVEL_WARN, "clocks",
			     "chronyd (or ptp4l) on all hosts, of one source",
			     "that of rank %" PRId32
			     " is %.3f ms from rank 0's, to within "
			     "%.3f ms: traces of ranks cannot be put together",
			     who, (double)most / 1e6, (double)exact / 1e6);
	else
		findings_add(job->found, LEVEL_PASS, "clocks", NULL,
			     "at most %.1f us apart, to within %.1f us",
			     (double)llabs(most) / 1e3, (double)exact / 1e3);
	return true;
}

/* ---- messages ---------------------------------------------------------------------- */

/* GB/s of a copy in memory. */
static double copy_rate(struct perf *p)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < COPIES; i++) {
		const int64_t begin = now_ns(CLOCK_MONOTONIC);
		int64_t took;

		memcpy(p->dst, p->src, COPY_BYTES);
		took = now_ns(CLOCK_MONOTONIC) - begin;
		best = took < best ? took : best;
	}
	return best > 0 ? (double)COPY_BYTES / (double)best : 0;
}

/* GB/s of this host's fastest NIC; 0: not known. */
static double nic_rate(void)
{
	char why[HOST_WHY];
	struct host *host;
	uint64_t most = 0;

	if (host_open(NULL, &host, why) != 0)
		return 0;
	for (unsigned i = 0; i < host->devices; i++)
		if (host->device[i].kind == HOST_NIC &&
		    host->device[i].state == HOST_UP && host->device[i].bits_per_s > most)
			most = host->device[i].bits_per_s;
	host_close(host);
	return (double)most / 8e9;
}

static bool messages(struct job *job, struct findings *own)
{
	struct perf *p = &job->perf;
	const bool apart = job->hosts > 1;
	double rate, nominal;
	char cure[FINDING_TEXT];

	if (measure_terms(p->comm, &job->terms) != WEFT_SUCCESS)
		return failed(own, "messages");
	if (p->rank || !job->terms.alpha_ps)
		return true;
	rate = job->terms.beta_fs ? 1e6 / (double)job->terms.beta_fs : 0;
	nominal = apart ? nic_rate() : copy_rate(p);
	snprintf(cure, sizeof(cure),
		 strcmp(p->provider, "weft") == 0
			 ? "see memory attach, MTU and affinity above, and whether other "
			   "programs use the cores (%s is used)"
			 : "FI_PROVIDER=weft, if weft info lists it (%s is used)",
		 p->provider);
	if (nominal > 0 && rate < nominal * (apart ? PART_OF_NIC : PART_OF_COPY))
		findings_add(job->found, LEVEL_WARN, "messages", cure,
			     "%.2f us, %.2f GB/s between ranks 0 and 1; %s %.2f GB/s",
			     (double)job->terms.alpha_ps / 1e6, rate,
			     apart ? "the fastest NIC has" : "a copy in memory has",
			     nominal);
	else
		findings_add(job->found, LEVEL_PASS, "messages", NULL,
			     "%.2f us, %.2f GB/s between ranks 0 and 1%s",
			     (double)job->terms.alpha_ps / 1e6, rate,
			     nominal > 0 ? "" : "; what the network has is not known");
	return true;
}

/* ---- collectives ------------------------------------------------------------------- */

struct contest {
	const struct perf_op *op;
	uint64_t bytes;
	struct perf_row chosen, best;
	double model_us; /* 0: the model says nothing of it */
};

static const struct perf_op *op_find(const char *name)
{
	for (size_t i = 0; i < perf_op_count; i++)
		if (strcmp(perf_op_table[i].name, name) == 0)
			return &perf_op_table[i];
	return NULL;
}

/* One size: the library's choice, then each algorithm. */
static bool contest_run(struct job *job, struct contest *c, int64_t budget_us)
{
	struct perf *p = &job->perf;
	const uint64_t count = c->bytes / p->elem;
	struct perf_row row;
	const struct algo *algo;

	job->perf_opts.algorithm = NULL;
	if (!perf_measure(p, c->op, count, budget_us, &c->chosen))
		return false;
	c->best = c->chosen;
	algo = algo_find(c->op->name, c->chosen.algorithm);
	c->model_us = algo ? perf_model_us(p, c->op, count, algo, &job->terms) : 0;
	for (size_t i = 0; i < algo_count; i++) {
		algo = &algo_table[i];
		if (strcmp(algo->coll, c->op->name) != 0 ||
		    strcmp(algo->name, c->chosen.algorithm) == 0)
			continue;
		job->perf_opts.algorithm = algo->name;
		if (!perf_algorithm(p, c->op, count) ||
		    !perf_table_counts(p, c->op, count, algo))
			continue;
		if (!perf_measure(p, c->op, count, budget_us, &row))
			return false;
		c->chosen.wrong += row.wrong;
		if (row.median_us < c->best.median_us)
			c->best = row;
	}
	job->perf_opts.algorithm = NULL;
	return true;
}

static void contest_judge(struct job *job, const struct contest *c)
{
	const struct perf_row *r = &c->chosen;
	const char *name = c->op->name;

	if (r->wrong)
		findings_add(job->found, LEVEL_FAIL, name,
			     "weft perf all shows which: report it, with its output",
			     "%" PRIu64 " results of %" PRIu64 " bytes were wrong",
			     r->wrong, c->bytes);
	if (c->model_us <= 0)
		findings_add(job->found, LEVEL_PASS, name, NULL,
			     "%" PRIu64 " bytes: %.2f us by %s, %.2f GB/s", c->bytes,
			     r->median_us, r->algorithm, r->bus_gbps);
	else
		findings_add(job->found,
			     r->median_us > c->model_us * MODEL_TIMES &&
					     r->median_us - c->model_us > MODEL_US
				     ? LEVEL_WARN
				     : LEVEL_PASS,
			     name,
			     r->median_us > c->model_us * MODEL_TIMES &&
					     r->median_us - c->model_us > MODEL_US
				     ? "weft perf allreduce --breakdown says what it is "
				       "spent on; cores that others use make it slow"
				     : NULL,
			     "%" PRIu64 " bytes: %.2f us by %s, %.2f GB/s; the model of "
			     "costs says %.2f us",
			     c->bytes, r->median_us, r->algorithm, r->bus_gbps,
			     c->model_us);
	if (r->median_us > c->best.median_us * CHOICE_TIMES &&
	    r->median_us - c->best.median_us > CHOICE_US)
		findings_add(job->found, LEVEL_WARN, "choice",
			     "weft run -n RANKS weft tune all --out tune.json, then "
			     "WEFT_TUNE=tune.json",
			     "%s of %" PRIu64 " bytes: %s takes %.2f us and %s %.2f us",
			     name, c->bytes, r->algorithm, r->median_us,
			     c->best.algorithm, c->best.median_us);
	else
		findings_add(job->found, LEVEL_PASS, "choice", NULL,
			     "%s of %" PRIu64
			     " bytes: %s is the best of those there are, "
			     "or near it",
			     name, c->bytes, r->algorithm);
}

static bool collectives(struct job *job, struct findings *own)
{
	struct contest c = {.op = op_find("allreduce")};
	int cells = SIZES;

	for (size_t i = 0; i < algo_count; i++)
		cells += strcmp(algo_table[i].coll, c.op->name) == 0 ? SIZES : 0;
	for (int i = 0; i < SIZES; i++) {
		c.bytes = sizes[i];
		if (!contest_run(job, &c, job->opts->budget_us / cells))
			return failed(own, "collectives");
		contest_judge(job, &c);
	}
	return true;
}

int doctor_job(const struct doctor_opts *opts, struct findings *own,
	       struct findings **sets, int *count)
{
	/* Static: after a failed call the process ends with all of it held. */
	static struct job job;

	*count = 0;
	job.opts = opts;
	job.perf_opts = (struct perf_opts){.who = "doctor",
					   .operation = "allreduce",
					   .first = sizes[0],
					   .last = sizes[SIZES - 1],
					   .budget_us = opts->budget_us,
					   .type = WEFT_FP32,
					   .op = WEFT_SUM};
	if (!perf_open(&job.perf, &job.perf_opts)) {
		failed(own, "ranks");
		return -1;
	}
	if (!ranks_gather(&job, own) || !clocks(&job, own) || !messages(&job, own) ||
	    !collectives(&job, own))
		return -1;
	if (job.perf.rank == 0) {
		*sets = job.sets;
		*count = job.perf.size + 1;
	}
	return perf_close(&job.perf) ? 0 : -1;
}
