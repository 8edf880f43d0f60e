/* SPDX-License-Identifier: BSD-2-Clause */
/* The option table: it is consistent, and nothing but what it says is accepted. */
#include "config.h"

#include "prov/mem/params.h"
#include "util/tap.h"

static uint64_t field(const struct prov_param *row)
{
	uint64_t v;

	memcpy(&v, (const char *)prov_params() + row->offset, sizeof(v));
	return v;
}

static const struct prov_param *row_of(const char *name)
{
	for (size_t i = 0; i < prov_param_count; i++) {
		if (strcmp(prov_param_table[i].name, name) == 0)
			return &prov_param_table[i];
	}
	tap_bail("no option %s", name);
}

static void test_table(void)
{
	for (size_t i = 0; i < prov_param_count; i++) {
		const struct prov_param *row = &prov_param_table[i];

		if (row->absent) {
			const char *text;

			memcpy(&text, (const char *)prov_params() + row->offset,
			       sizeof(text));
			tap_ok(!text && row->text && !row->words && !row->max,
			       "%s: a text, which isn't set", row->name);
			continue;
		}
		tap_ok(row->initial >= row->min && row->initial <= row->max,
		       "%s: the default is in range", row->name);
		tap_is_int((int64_t)field(row), (int64_t)row->initial,
			   "it holds before anything was read");
		tap_ok(row->offset < sizeof(struct prov_params) && row->text,
		       "it has a field");
	}
}

static void test_parse(void)
{
	static const char *const bad[] = {"",	 "0",	    "-1",
					  " 5",	 "5 ",	    "abc",
					  "5ms", "3600001", "99999999999999999999"};
	const struct prov_param *ms = row_of("connect_timeout"), *cma = row_of("cma");
	uint64_t v = 42;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		tap_ok(!prov_param_parse(ms, bad[i], &v) && v == 42, "refused: \"%s\"",
		       bad[i]);
	tap_ok(prov_param_parse(ms, "1", &v) && v == 1, "the least");
	tap_ok(prov_param_parse(ms, "3600000", &v) && v == 3600000, "the most");
	tap_ok(prov_param_parse(cma, "auto", &v) && v == PROV_CMA_AUTO, "a word");
	tap_ok(prov_param_parse(cma, "0", &v) && v == PROV_CMA_OFF, "0");
	tap_ok(prov_param_parse(cma, "1", &v) && v == PROV_CMA_ON, "1");
	tap_ok(!prov_param_parse(cma, "2", &v) && !prov_param_parse(cma, "yes", &v),
	       "no other");
}

int main(void)
{
	test_table();
	test_parse();
	return tap_done();
}
