/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the checker: a SEND with a proof starts after its RECV is READY. The proof is a
 * RECV of the sender, done before the SEND starts (it is one of its dependencies). What
 * it received was sent by the same peer, in a SEND that started after the peer's own
 * dependencies for it; if everything that the RECV in question depends on is done before
 * that SEND starts, the RECV is READY by then. A RECV that depends on nothing is READY
 * since the peer began the call, and any message of this call from it says so.
 */
#include "config.h"

#include <errno.h>
#include <inttypes.h>

#include "coll/plan/check_job.h"

static int proof_check(struct check_job *job, int32_t rank,
		       const struct check_instance *send, uint64_t proof,
		       struct check_reach *reach)
{
	const struct check_rank *me = &job->rank[rank], *peer = &job->rank[send->peer];
	struct plan_instance in;
	const struct plan_step *recv;
	uint64_t told;

	plan_instance_at(me->plan, proof, &in);
	if (in.peer != send->peer)
		return check_fault_at(job, rank, send->number,
				      "proof: it is for rank %d, but its proof, instance "
				      "%" PRIu64 ", comes from rank %d",
				      send->peer, proof, in.peer);
	told = me->pair[proof];
	plan_instance_at(peer->plan, me->pair[send->number], &in);
	recv = &peer->plan->step[in.step];
	for (uint32_t i = 0; i < recv->dep_count; i++) {
		uint64_t on;
		int ret;

		if (!check_dep_on(&peer->dep[recv->dep_first + i], in.trip, &on))
			continue;
		ret = on == told ? 0 : check_reaches(reach, on, told);
		if (ret < 0)
			return ret;
		if (!ret)
			return check_fault_at(
				job, rank, send->number,
				"proof: rank %d's instance %" PRIu64
				" proves nothing: the RECV, instance %" PRIu64
				", also waits for instance %" PRIu64,
				send->peer, told, in.number, on);
	}
	return 0;
}

static int rank_proofs(struct check_job *job, int32_t r)
{
	const struct check_rank *rank = &job->rank[r];
	struct check_instance in;
	struct check_walk walk;
	int ret = 0;

	if (!check_walk_init(&walk, rank))
		return -ENOMEM;
	while (!ret && check_walk_next(&walk, &in)) {
		const struct plan_step *s = &rank->plan->step[in.step];
		struct check_reach reach;
		uint64_t proof;

		if (s->kind != PLAN_SEND || s->proof == PLAN_NO_PROOF ||
		    !check_dep_on(&rank->dep[s->proof], in.trip, &proof))
			continue;
		ret = check_reach_init(&reach, &job->rank[in.peer])
			      ? proof_check(job, r, &in, proof, &reach)
			      : -ENOMEM;
		check_reach_fini(&reach);
	}
	check_walk_fini(&walk);
	return ret;
}

int check_proofs(struct check_job *job)
{
	int ret = 0;

	for (int32_t r = 0; job->proofs && !ret && r < job->size; r++)
		ret = rank_proofs(job, r);
	return ret;
}
