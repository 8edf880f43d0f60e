/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of algorithms: what is chosen by one, and what is refused. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/tune/tune.h"
#include "util/tap.h"

static const char good[] =
	"{\"schema\": 1, \"kind\": \"weft-tune\", \"provider\": \"tcp;ofi_rxm\",\n"
	" \"made\": {\"by\": [\"hand\", -1.5e3, null, true]},\n"
	" \"choices\": [\n"
	"  {\"collective\": \"allreduce\", \"ranks\": 8, \"up_to\": 65536,\n"
	"   \"algorithm\": \"ring\", \"us\": 12.5},\n"
	"  {\"collective\": \"allreduce\", \"ranks\": 8, \"up_to\": 1024,\n"
	"   \"algorithm\": \"recursive-doubling\"},\n"
	"  {\"collective\": \"allreduce\", \"ranks\": 2, \"up_to\": 64,\n"
	"   \"algorithm\": \"double-tree\"},\n"
	"  {\"collective\": \"broadcast\", \"ranks\": 4, \"up_to\": 64,\n"
	"   \"algorithm\": \"flat\"}]}\n";

static const char *chosen(const struct tune *t, const char *coll, int32_t size,
			  uint64_t bytes)
{
	const struct plan_call call = {.size = size, .count = bytes, .elem_size = 1};
	const struct tune_choice *c = tune_find(t, coll, &call);

	return c ? c->algo->name : "none";
}

static void choice_tests(void)
{
	struct tune *t, *other;
	const struct plan_call ordered = {
		.size = 8, .count = 65536, .elem_size = 1, .ordered = true};

	if (tune_parse("good", good, strlen(good), &t) != WEFT_SUCCESS)
		tap_bail("a good table: %s", weft_error_detail());
	tap_is_int(t->count, 4, "a table of four");
	tap_is_str(t->provider, "tcp;ofi_rxm", "measured over a provider");
	tap_is_str(chosen(t, "allreduce", 8, 0), "recursive-doubling", "nothing");
	tap_is_str(chosen(t, "allreduce", 8, 1024), "recursive-doubling", "just enough");
	tap_is_str(chosen(t, "allreduce", 8, 1025), "ring", "the next length");
	tap_is_str(chosen(t, "allreduce", 8, UINT64_MAX), "ring", "longer than any");
	tap_is_str(chosen(t, "allreduce", 2, 8), "double-tree", "another size");
	tap_is_str(chosen(t, "allreduce", 3, 8), "double-tree", "3 is nearer to 2");
	tap_is_str(chosen(t, "allreduce", 5, 8), "recursive-doubling",
		   "5 is nearer to 8 by ratio");
	tap_is_str(chosen(t, "allreduce", 4, 8), "double-tree",
		   "the smaller of two that are as near");
	tap_is_str(chosen(t, "allreduce", 1000, 8), "recursive-doubling", "1000 to 8");
	tap_is_str(chosen(t, "broadcast", 17, 8), "none", "what it can't do, it doesn't");
	tap_is_str(chosen(t, "gather", 4, 8), "none", "what it doesn't say");
	tap_ok(!tune_find(t, "allreduce", &ordered), "an operation in order");
	tap_is_str(chosen(NULL, "allreduce", 4, 8), "none", "no table");
	if (tune_parse("again", good, strlen(good), &other) != WEFT_SUCCESS)
		tap_bail("again: %s", weft_error_detail());
	tap_ok(t->hash && t->hash == other->hash, "the same table has the same hash");
	tune_close(t);
	tune_close(other);
}

static void refused(const char *text, const char *word)
{
	struct tune *t;

	tap_ok(tune_parse("bad", text, strlen(text), &t) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), word),
	       "refused: %s", weft_error_detail());
}

/* A table may be of ranks that share memory, and read by such that don't. */
static void lines_tests(void)
{
	static const char text[] = "{\"schema\":1,\"kind\":\"weft-tune\",\"choices\":["
				   "{\"collective\":\"allreduce\",\"ranks\":2,"
				   "\"up_to\":65536,\"algorithm\":\"lines\"}]}";
	struct plan_call call = {.size = 2, .count = 1, .elem_size = 8, .lines = true};
	struct tune *t;

	if (tune_parse("lines", text, strlen(text), &t) != WEFT_SUCCESS)
		tap_bail("lines: %s", weft_error_detail());
	tap_ok(tune_find(t, "allreduce", &call), "lines where they are shared");
	call.count = 8192;
	tap_ok(!tune_find(t, "allreduce", &call), "not for what they don't hold");
	call = (struct plan_call){.size = 2, .count = 1, .elem_size = 8};
	tap_ok(!tune_find(t, "allreduce", &call), "nor where they aren't");
	tune_close(t);
}

#define HEAD "{\"schema\":1,\"kind\":\"weft-tune\",\"choices\":["

static void refusal_tests(void)
{
	static const char absent[] = "/nonexistent/weft-tune.json";
	char deep[256];
	struct tune *t;

	refused("", "line 1, column 1: there must be {");
	refused("{\"schema\":2}", "reads schema 1, not \"2\"");
	refused("{\"schema\":1,\"kind\":\"x\"}", "must be weft-tune, not \"x\"");
	refused("{\"schema\":1,\"kind\":\"weft-tune\"}", "choices");
	refused("{\"kind\":\"weft-tune\",\"choices\":[]}", "schema");
	refused(HEAD "{\"collective\":\"allreduce\",\"ranks\":2,\"up_to\":1,"
		     "\"algorithm\":\"rung\"}]}",
		"no algorithm for \"allreduce by rung\"");
	refused(HEAD "{\"collective\":\"allreduce\",\"ranks\":0,\"up_to\":1,"
		     "\"algorithm\":\"ring\"}]}",
		"number of \"ranks\"");
	refused(HEAD "{\"collective\":\"allreduce\",\"ranks\":2,"
		     "\"algorithm\":\"ring\"}]}",
		"\"up_to\"");
	refused(HEAD "{\"ranks\":1.5}]}", "a whole number");
	refused(HEAD "{\"ranks\":99999999999999999999999}]}", "a number of 64 bits");
	refused(HEAD "\n{\"ranks\":}]}", "line 2, column 10");
	refused(HEAD "]} x", "the end");
	refused("{\"x\":[}", "the other bracket");
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	memcpy(deep, "{\"x\":", 5);
	refused(deep, "less depth");
	tap_ok(tune_open(absent, &t) == WEFT_ERR_ARG &&
		       strstr(weft_error_detail(), absent),
	       "a file that there isn't: %s", weft_error_detail());
	tap_ok(tune_open(NULL, &t) == WEFT_SUCCESS && !t, "no file is no table");
}

/* Whatever is read: a table or a sentence. Copies end where their memory ends. */
static void damage_tests(void)
{
	const char *given = getenv("WEFT_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);
	int wrong = 0, taken = 0;

	tap_diag("seed %u (repeat with WEFT_SEED=%u)", seed, seed);
	srand(seed);
	for (size_t i = 0; i < 4 * sizeof(good); i++) {
		const size_t len = i < sizeof(good) - 2 ? i : sizeof(good) - 1;
		char *copy = malloc(len + !len);
		struct tune *t = NULL;
		enum weft_result result;

		if (!copy)
			tap_bail("out of memory");
		memcpy(copy, good, len);
		for (int k = 0; len == sizeof(good) - 1 && k < 3; k++)
			copy[(size_t)rand() % len] = (char)rand();
		result = tune_parse("damaged", copy, len, &t);
		wrong += result == WEFT_SUCCESS ? len < sizeof(good) - 1
						: result != WEFT_ERR_ARG;
		taken += result == WEFT_SUCCESS;
		if (result == WEFT_SUCCESS)
			tune_close(t);
		free(copy);
	}
	tap_ok(!wrong, "cut short or changed: refused with a sentence, or whole (%d)",
	       taken);
}

int main(void)
{
	choice_tests();
	lines_tests();
	refusal_tests();
	damage_tests();
	return tap_done();
}
