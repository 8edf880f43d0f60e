/* SPDX-License-Identifier: BSD-2-Clause */
/* The model of costs: what it chooses, that it knows the table, and numbers at the edge.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tune/tune.h"
#include "util/tap.h"

/* 2 us, 10 GB/s, 5 GB/s added up. */
static const struct cost_terms net = {2000000, 100000, 200000};

static const char *chosen(const struct cost_terms *terms, const char *coll, int32_t size,
			  uint64_t bytes)
{
	const struct plan_call call = {.size = size, .count = bytes, .elem_size = 1};
	const struct algo *algo = cost_choose(terms, coll, &call, NULL);

	return algo ? algo->name : "none";
}

static void choice_tests(void)
{
	struct cost_terms slow = net;
	const struct cost_terms none = {.alpha_ps = 0};

	tap_is_str(chosen(&net, "allreduce", 8, 8), "recursive-doubling",
		   "a short all-reduce: few rounds");
	tap_is_str(chosen(&net, "allreduce", 8, 1 << 16), "halving-doubling",
		   "a longer one: few bytes");
	tap_is_str(chosen(&net, "allreduce", 7, 1 << 20), "ring",
		   "where halving moves the vector once more: the ring");
	tap_is_str(chosen(&net, "allgather", 8, 8), "recursive-doubling",
		   "an all-gather: few rounds");
	tap_is_str(chosen(&net, "alltoall", 64, 8), "bruck", "tiny blocks: few rounds");
	tap_is_str(chosen(&net, "alltoall", 64, 1 << 20), "direct",
		   "long ones: once each");
	tap_is_str(chosen(&net, "broadcast", 64, 8), "knomial",
		   "a short broadcast: few levels");
	tap_is_str(chosen(&net, "broadcast", 16, 1 << 26), "chain",
		   "a very long one: in pieces");
	tap_is_str(chosen(&net, "gather", 4, 1 << 20), "direct", "a gather of few");
	tap_is_str(chosen(&net, "gather", 1000, 8), "binomial", "of many");
	/* Where a message costs a hundred times as much, rounds count for longer. */
	slow.alpha_ps *= 100;
	tap_is_str(chosen(&slow, "allreduce", 8, 1 << 16), "recursive-doubling",
		   "dear messages: few rounds for longer vectors");
	tap_is_str(chosen(&net, "allgatherv", 8, 8), "none", "what it doesn't know");
	tap_is_str(chosen(&net, "gossip", 8, 8), "none", "what there isn't");
	tap_is_str(chosen(&none, "allreduce", 8, 8), "none", "without terms");
}

static void table_tests(void)
{
	int unknown = 0;

	for (size_t i = 0; i < algo_count; i++) {
		const struct algo *algo = &algo_table[i];
		const struct plan_call call = {.size = 4, .count = 8, .elem_size = 4};
		const bool known = cost_of(&net, algo, &call) != COST_NONE;

		if (known == (algo->vector || !strcmp(algo->name, "hierarchical") ||
			      !strcmp(algo->name, ALGO_LINES))) {
			tap_diag("%s by %s", algo->coll, algo->name);
			unknown++;
		}
	}
	tap_is_int(unknown, 0,
		   "it knows every algorithm but those of levels, of lines and of (v) "
		   "forms");
}

static uint64_t draw(uint64_t most)
{
	const uint64_t r =
		(uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random();

	/* All lengths of numbers alike. */
	return (r >> random() % 64) % (most + 1);
}

/* Whatever terms and call: the least of all, which can do the call, and longer is never
 * cheaper. */
static void property_tests(void)
{
	const char *given = getenv("WEFT_SEED");
	const unsigned seed =
		given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
	int wrong = 0;

	tap_diag("seed %u (repeat with WEFT_SEED=%u)", seed, seed);
	srandom(seed);
	for (int i = 0; i < 2000; i++) {
		const struct cost_terms terms = {1 + draw(COST_ALPHA_MOST - 1),
						 draw(COST_BYTE_MOST),
						 draw(COST_BYTE_MOST)};
		const struct algo *of = &algo_table[draw(algo_count - 1)];
		struct plan_call call = {.size = 1 + (int32_t)draw(INT32_MAX - 1),
					 .count = draw(UINT64_MAX - 1),
					 .elem_size = 1 + (uint32_t)draw(15),
					 .ordered = draw(1),
					 .fetches = draw(1)};
		const struct algo *algo = cost_choose(&terms, of->coll, &call, NULL);
		const uint64_t cost = algo ? cost_of(&terms, algo, &call) : 0;
		char text[192];

		for (size_t a = 0; a < algo_count && algo; a++)
			wrong += !strcmp(algo_table[a].coll, of->coll) &&
				 cost_of(&terms, &algo_table[a], &call) < cost;
		cost_say(&terms, of->coll, &call, text, sizeof(text));
		wrong += (algo && !algo->supports(&call)) || !text[0];
		call.count /= 2;
		wrong += algo && cost_of(&terms, algo, &call) > cost;
	}
	tap_is_int(wrong, 0, "the cheapest is taken, and half as long costs no more");
}

#define HEAD "{\"schema\":1,\"kind\":\"weft-tune\","

static void refused(const char *cost, const char *word)
{
	char text[256];
	struct tune *t;

	snprintf(text, sizeof(text), HEAD "\"cost\":%s,\"choices\":[]}", cost);
	tap_ok(tune_parse("bad", text, strlen(text), &t) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), word),
	       "refused: %s", weft_error_detail());
}

/* Choices count more than the model, the model more than limits. */
static void file_tests(void)
{
	static const char both[] =
		HEAD "\"cost\":{\"alpha_ps\":2000000,\"beta_fs\":100000,"
		     "\"gamma_fs\":200000,\"made\":\"by hand\"},\"choices\":["
		     "{\"collective\":\"broadcast\",\"ranks\":8,\"up_to\":8,"
		     "\"algorithm\":\"chain\"}]}";
	const struct plan_call call = {.size = 8, .count = 1 << 16, .elem_size = 1};
	struct tune *t, *other;
	char text[192];
	char *changed = strdup(both);

	if (!changed || tune_parse("both", both, strlen(both), &t) != WEFT_SUCCESS)
		tap_bail("terms and a choice: %s", weft_error_detail());
	tap_is_str(tune_choose(t, "broadcast", &call)->name, "chain", "a choice counts");
	tap_is_str(tune_choose(t, "allreduce", &call)->name, "halving-doubling",
		   "else the model");
	tap_is_str(tune_choose(t, "allgatherv", &call)->name,
		   algo_choose("allgatherv", &call)->name, "else the limits");
	tap_is_str(tune_choose(NULL, "allreduce", &call)->name,
		   algo_choose("allreduce", &call)->name, "without a table the limits");
	tune_say(t, "allreduce", &call, text, sizeof(text));
	tap_ok(strstr(text, "cost model: ") && strstr(text, "alpha 2.000 us"),
	       "it is said: %s", text);
	*strstr(changed, "200000,\"made") = '3';
	if (tune_parse("changed", changed, strlen(changed), &other) != WEFT_SUCCESS)
		tap_bail("other terms: %s", weft_error_detail());
	tap_ok(t->hash != other->hash, "other terms have another hash");
	tune_close(other);
	tune_close(t);
	free(changed);
	refused("{\"alpha_ps\":0,\"beta_fs\":1,\"gamma_fs\":1}", "alpha_ps must be");
	refused("{\"beta_fs\":1,\"gamma_fs\":1}", "alpha_ps must be");
	refused("{\"alpha_ps\":1,\"beta_fs\":1000000001}", "beta_fs must be");
	refused("{\"alpha_ps\":1,\"gamma_fs\":1000000001}", "gamma_fs must be");
	refused("{\"alpha_ps\":1.5}", "a whole number");
	refused("[]", "there must be {");
	tap_ok(tune_open(TUNE_MEASURE, &t) == WEFT_SUCCESS && t->measure && t->hash &&
		       !t->cost.alpha_ps,
	       "terms that are to be measured");
	tap_is_str(tune_choose(t, "allreduce", &call)->name,
		   algo_choose("allreduce", &call)->name, "until then the limits");
	tune_close(t);
}

int main(void)
{
	choice_tests();
	table_tests();
	property_tests();
	file_tests();
	return tap_done();
}
