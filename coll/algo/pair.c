/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message between two ranks, as each of them sees it: one SEND or one RECV of a whole
 * buffer. No collective, and so in no table: what is proven of plans is about all ranks.
 */
#include "config.h"

#include "coll/algo/build.h"
#include "coll/algo/pair.h"

static int pair_build(const struct plan_call *call, bool sends, struct plan **plan,
		      const char **why)
{
	int ret = build_check(call, 1, why);
	struct plan_builder *b;
	struct plan_range all;

	if (!ret)
		ret = build_check_root(call, why);
	if (ret)
		return ret;
	b = plan_builder_open(sends ? "send" : "receive", call);
	all = plan_nothing();
	if (call->count)
		all = plan_run(sends ? PLAN_SRC : PLAN_DST,
			       plan_add_balanced(b, call->count, 1), 0, 1);
	if (sends)
		plan_add_send(b, call->root, all,
			      call->count ? plan_anywhere() : plan_nothing());
	else
		plan_add_recv(b, call->root, all);
	return plan_builder_finish(b, plan, why);
}

static int send_build(const struct plan_call *call, struct plan **plan, const char **why)
{
	return pair_build(call, true, plan, why);
}

static int receive_build(const struct plan_call *call, struct plan **plan,
			 const char **why)
{
	return pair_build(call, false, plan, why);
}

static bool pair_supports(const struct plan_call *call)
{
	return call->root != call->rank;
}

const struct algo pair_send = {.coll = "send",
			       .name = "message",
			       .what = "one message: a + m b",
			       .supports = pair_supports,
			       .build = send_build};
const struct algo pair_receive = {.coll = "receive",
				  .name = "message",
				  .what = "one message: a + m b",
				  .supports = pair_supports,
				  .build = receive_build};
