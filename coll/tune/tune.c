/* SPDX-License-Identifier: BSD-2-Clause */
/* See tune.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/tune/json_read.h"
#include "coll/tune/tune.h"

/* ---- reading ----------------------------------------------------------------------- */

/* A table that grows while it is read. */
struct reading {
	struct json_read json;
	struct tune *tune;
	uint32_t room;
	bool schema, kind, choices; /* were there, as they must be */
	char why[160];		    /* what is wrong beyond the form; "": nothing */
};

static bool refuse(struct reading *r, const char *what, const char *value)
{
	if (!r->why[0])
		snprintf(r->why, sizeof(r->why), "%s \"%s\"", what, value);
	return false;
}

static bool choice_keep(struct reading *r, const struct tune_choice *choice)
{
	if (r->tune->count == TUNE_CHOICES_MAX)
		return refuse(r, "there are more choices than", "16384");
	if (r->tune->count == r->room) {
		const uint32_t room = r->room ? 2 * r->room : 64;
		struct tune *more =
			realloc(r->tune, sizeof(*more) + room * sizeof(more->choice[0]));

		if (!more)
			return refuse(r, "no memory for", "choices");
		r->tune = more;
		r->room = room;
	}
	r->tune->choice[r->tune->count++] = *choice;
	return true;
}

static bool choice_read(struct reading *r)
{
	char key[JSON_READ_TEXT], coll[JSON_READ_TEXT] = "", name[JSON_READ_TEXT] = "";
	struct json_read *j = &r->json;
	struct tune_choice choice = {.algo = NULL};
	uint64_t ranks = 0;
	bool up_to = false;

	if (!json_read_mark(j, '{'))
		return false;
	do {
		if (!json_read_text(j, key) || !json_read_mark(j, ':'))
			return false;
		if (!strcmp(key, "collective"))
			json_read_text(j, coll);
		else if (!strcmp(key, "algorithm"))
			json_read_text(j, name);
		else if (!strcmp(key, "ranks"))
			json_read_number(j, &ranks);
		else if (!strcmp(key, "up_to"))
			up_to = json_read_number(j, &choice.up_to);
		else
			json_read_skip(j);
	} while (json_read_is(j, ','));
	if (!json_read_mark(j, '}'))
		return false;
	if (ranks < 1 || ranks > INT32_MAX)
		return refuse(r, "a choice needs a number of \"ranks\", of", coll);
	if (!up_to)
		return refuse(r, "a choice needs \"up_to\", of", coll);
	choice.algo = algo_find(coll, name);
	if (!choice.algo) {
		snprintf(key, sizeof(key), "%.30s by %.29s", coll, name);
		return refuse(r, "there is no algorithm for", key);
	}
	choice.ranks = (int32_t)ranks;
	return choice_keep(r, &choice);
}

static bool cost_read(struct reading *r)
{
	struct cost_terms *terms = &r->tune->cost;
	struct json_read *j = &r->json;
	char key[JSON_READ_TEXT];
	const char *fault;

	if (!json_read_mark(j, '{'))
		return false;
	do {
		if (!json_read_text(j, key) || !json_read_mark(j, ':'))
			return false;
		if (!strcmp(key, "alpha_ps"))
			json_read_number(j, &terms->alpha_ps);
		else if (!strcmp(key, "beta_fs"))
			json_read_number(j, &terms->beta_fs);
		else if (!strcmp(key, "gamma_fs"))
			json_read_number(j, &terms->gamma_fs);
		else
			json_read_skip(j);
	} while (json_read_is(j, ','));
	if (!json_read_mark(j, '}'))
		return false;
	fault = cost_terms_check(terms);
	return !fault || refuse(r, fault, "in cost");
}

static bool choices_read(struct reading *r)
{
	struct json_read *j = &r->json;

	if (!json_read_mark(j, '['))
		return false;
	r->choices = true;
	if (json_read_is(j, ']'))
		return true;
	do {
		if (!choice_read(r))
			return false;
	} while (json_read_is(j, ','));
	return json_read_mark(j, ']');
}

static bool member_read(struct reading *r, const char *key)
{
	struct json_read *j = &r->json;
	char text[JSON_READ_TEXT];
	uint64_t number;

	if (!strcmp(key, "schema")) {
		if (!json_read_number(j, &number))
			return false;
		snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
		r->schema = number == TUNE_SCHEMA;
		return r->schema || refuse(r, "this library reads schema 1, not", text);
	}
	if (!strcmp(key, "kind")) {
		if (!json_read_text(j, text))
			return false;
		r->kind = !strcmp(text, TUNE_KIND);
		return r->kind || refuse(r, "the kind must be weft-tune, not", text);
	}
	if (!strcmp(key, "provider")) {
		if (!json_read_text(j, text))
			return false;
		snprintf(r->tune->provider, sizeof(r->tune->provider), "%.31s", text);
		return true;
	}
	if (!strcmp(key, "cost"))
		return cost_read(r);
	return !strcmp(key, "choices") ? choices_read(r) : json_read_skip(j);
}

static bool document_read(struct reading *r)
{
	struct json_read *j = &r->json;
	char key[JSON_READ_TEXT];

	if (!json_read_mark(j, '{'))
		return false;
	do {
		if (!json_read_text(j, key) || !json_read_mark(j, ':') ||
		    !member_read(r, key))
			return false;
	} while (json_read_is(j, ','));
	if (!json_read_mark(j, '}') || !json_read_end(j))
		return false;
	if (!r->kind || !r->schema || !r->choices)
		return refuse(r, "there must be",
			      !r->kind	   ? "kind"
			      : !r->schema ? "schema"
					   : "choices");
	return true;
}

static int choice_compare(const void *a, const void *b)
{
	const struct tune_choice *x = a, *y = b;
	const int coll = strcmp(x->algo->coll, y->algo->coll);

	if (coll)
		return coll;
	if (x->ranks != y->ranks)
		return x->ranks < y->ranks ? -1 : 1;
	return (x->up_to > y->up_to) - (x->up_to < y->up_to);
}

/* FNV-1a over what decides: names, since tables of two builds may differ in order. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
	do {
		hash = (hash ^ (uint8_t)*text) * UINT64_C(1099511628211);
	} while (*text++);
	return hash;
}

static uint64_t choices_hash(const struct tune *tune)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	char text[80];

	snprintf(text, sizeof(text), "%d %llu %llu %llu", tune->measure,
		 (unsigned long long)tune->cost.alpha_ps,
		 (unsigned long long)tune->cost.beta_fs,
		 (unsigned long long)tune->cost.gamma_fs);
	hash = hash_text(hash, text);

	for (uint32_t i = 0; i < tune->count; i++) {
		const struct tune_choice *c = &tune->choice[i];

		snprintf(text, sizeof(text), "%d %llu", c->ranks,
			 (unsigned long long)c->up_to);
		hash = hash_text(hash_text(hash_text(hash, c->algo->coll), c->algo->name),
				 text);
	}
	return hash | 1; /* 0: no table */
}

enum weft_result tune_parse(const char *name, const char *text, size_t len,
			    struct tune **tune)
{
	struct reading r = {.json = {.text = text, .len = len}};
	int line, column;

	r.tune = calloc(1, sizeof(*r.tune));
	if (!r.tune)
		return error_set(WEFT_ERR_NOMEM, "no memory for a table of algorithms");
	if (document_read(&r)) {
		qsort(r.tune->choice, r.tune->count, sizeof(r.tune->choice[0]),
		      choice_compare);
		r.tune->hash = choices_hash(r.tune);
		*tune = r.tune;
		return WEFT_SUCCESS;
	}
	free(r.tune);
	json_read_where(&r.json, &line, &column);
	if (r.json.fault)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_TUNE: %.200s, line %d, column %d: there must be "
				 "%s; weft tune writes such files",
				 name, line, column, r.json.fault);
	return error_set(WEFT_ERR_ARG, "WEFT_TUNE: %.200s, line %d: %s", name, line,
			 r.why);
}

static enum weft_result tune_measured(struct tune **tune)
{
	struct tune *t = calloc(1, sizeof(*t));

	if (!t)
		return error_set(WEFT_ERR_NOMEM, "no memory for a table of algorithms");
	t->measure = true;
	t->hash = choices_hash(t);
	*tune = t;
	return WEFT_SUCCESS;
}

enum weft_result tune_open(const char *path, struct tune **tune)
{
	enum weft_result result;
	size_t len;
	char *text;
	FILE *f;

	*tune = NULL;
	if (!path || !*path)
		return WEFT_SUCCESS;
	if (!strcmp(path, TUNE_MEASURE))
		return tune_measured(tune);
	f = fopen(path, "re");
	if (!f)
		return error_set(WEFT_ERR_ARG,
				 "WEFT_TUNE: %.200s: %s; name a file that weft tune "
				 "wrote, or measure, or unset it",
				 path, strerror(errno));
	text = malloc(TUNE_FILE_MAX + 1);
	if (!text) {
		fclose(f);
		return error_set(WEFT_ERR_NOMEM, "no memory for a table of algorithms");
	}
	len = fread(text, 1, TUNE_FILE_MAX + 1, f);
	if (ferror(f))
		result =
			error_set(WEFT_ERR_ARG,
				  "WEFT_TUNE: %.200s: it can't be read; name a file that "
				  "weft tune wrote, or measure, or unset it",
				  path);
	else if (len > TUNE_FILE_MAX)
		result = error_set(WEFT_ERR_ARG,
				   "WEFT_TUNE: %.200s: it is longer than %d bytes", path,
				   TUNE_FILE_MAX);
	else
		result = tune_parse(path, text, len, tune);
	free(text);
	fclose(f);
	return result;
}

void tune_close(struct tune *tune)
{
	free(tune);
}

/* ---- choosing ---------------------------------------------------------------------- */

/* How far apart two numbers of ranks are: by which the larger exceeds the smaller one,
 * times 1024. */
static uint64_t apart(int32_t a, int32_t b)
{
	const uint64_t more = (uint64_t)(a > b ? a : b), less = (uint64_t)(a > b ? b : a);

	return more * 1024 / less;
}

bool tune_counts(const struct algo *algo, const struct plan_call *call)
{
	return algo->supports(call) && (strcmp(algo->name, ALGO_LINES) != 0 ||
					algo_goes_by_lines(algo->coll, call));
}

const struct tune_choice *tune_find(const struct tune *tune, const char *coll,
				    const struct plan_call *call)
{
	const struct tune_choice *found = NULL;
	uint64_t bytes;

	if (__builtin_mul_overflow(call->count, (uint64_t)call->elem_size, &bytes))
		bytes = UINT64_MAX;
	for (uint32_t i = 0; tune && i < tune->count; i++) {
		const struct tune_choice *c = &tune->choice[i];

		if (strcmp(c->algo->coll, coll) != 0)
			continue;
		if (found && c->ranks != found->ranks &&
		    apart(c->ranks, call->size) >= apart(found->ranks, call->size))
			break; /* they ascend: it gets no nearer */
		if (!found || c->ranks != found->ranks || found->up_to < bytes)
			found = c;
	}
	return found && tune_counts(found->algo, call) ? found : NULL;
}

/* The model is of messages. */
static const struct algo *tune_by_cost(const struct tune *tune, const char *coll,
				       const struct plan_call *call)
{
	return tune && !algo_goes_by_lines(coll, call)
		       ? cost_choose(&tune->cost, coll, call, NULL)
		       : NULL;
}

const struct algo *tune_choose(const struct tune *tune, const char *coll,
			       const struct plan_call *call)
{
	const struct tune_choice *choice = tune_find(tune, coll, call);
	const struct algo *algo = choice ? choice->algo : NULL;

	if (!algo)
		algo = tune_by_cost(tune, coll, call);
	return algo ? algo : algo_choose(coll, call);
}

void tune_say(const struct tune *tune, const char *coll, const struct plan_call *call,
	      char *text, size_t len)
{
	if (tune_find(tune, coll, call))
		snprintf(text, len, "WEFT_TUNE has it as the fastest");
	else if (tune_by_cost(tune, coll, call))
		cost_say(&tune->cost, coll, call, text, len);
	else
		snprintf(text, len, "%s", algo_why(coll, call));
}
