/* SPDX-License-Identifier: BSD-2-Clause */
/* For the tests of prov/fi: a fabric and a domain without libfabric in front of them, and
 * a pollable that stands for an endpoint's engine. */
#ifndef WEFT_FI_TEST_H
#define WEFT_FI_TEST_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "prov/fi/cntr.h"
#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/pollable.h"
#include "util/tap.h"

struct env {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fi_info *info;
};

struct env_want {
	uint32_t api; /* 0: 1.17 */
	enum fi_threading threading;
	enum fi_progress progress;
	int mr_mode;
	uint32_t addr_format;
};

/* Bails out when anything fails. */
void env_open(struct env *e, const struct env_want *want);

/* Here, since each translation unit counts its own checks. */
static inline void env_close(struct env *e)
{
	tap_is_int(fi_close(&e->domain->fid), 0, "the domain closes");
	tap_is_int(fi_close(&e->fabric->fid), 0, "the fabric closes");
	fi_freeinfo(e->info);
}

/*
 * An engine with things to deliver. What is posted waits until progress() delivers it
 * into cq and cntr (either may be NULL); its descriptor is raised only when it was armed
 * after the last progress(), as a wire's is.
 */
struct engine {
	struct wfi_pollable base; /* first */
	struct wfi_cq *cq;
	struct wfi_cntr *cntr;
	struct wfi_cntr *error_cntr;
	int fd;
	atomic_bool disabled; /* no descriptor yet, nothing is delivered */
	atomic_int pending;
	atomic_int pending_errors;
	atomic_bool armed;
	atomic_ullong due; /* delivers one by itself then */
	atomic_int polls;
	uint64_t next; /* data of the next entry */
};

void engine_init(struct engine *g);
void engine_fini(struct engine *g);
/* From any thread, without a lock. */
void engine_post(struct engine *g, int n);
void engine_post_error(struct engine *g);
/* Leaves it for whoever progresses next: nobody is woken. */
void engine_post_quietly(struct engine *g, int n);

/* Runs fn(arg) after ms on another thread. */
struct later {
	pthread_t thread;
	int ms;
	void (*fn)(void *arg);
	void *arg;
};
void later_start(struct later *l, int ms, void (*fn)(void *arg), void *arg);
void later_join(struct later *l);

void sleep_ms(int ms);

/* A child that is stopped while it sleeps, and goes on (a shell's job control, a debugger
 * that attaches): no sleep ends by that. */
struct stop {
	int ready, go; /* to the parent, from it */
	struct engine *engine;
	pthread_t thread;
};
/* In the child, just before it sleeps: the engine gets one thing when that is over. */
void stop_soon(struct stop *s, struct engine *g);
/* Forks a child, before this process has threads; whether fn gave true there. */
bool stop_while(bool (*fn)(struct stop *s));

#endif
