/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data of weft perf: reducing what the ranks put in gives what must come out, for
 * every type and operation and in any order of ranks; and what is wrong is found.
 */
#include "config.h"

#include "cli/perf_data.h"
#include "coll/exec/reduce.h"
#include "util/tap.h"

enum { COUNT = DATA_PERIOD + 100 };

static struct data data;
static uint64_t buf[2][COUNT];

/* Ranks in the order first, first + step, ... modulo ranks; step and ranks are coprime.
 */
static bool reduces_right(enum weft_type type, enum weft_op op, int32_t ranks,
			  int32_t first, int32_t step)
{
	struct data_view acc = {buf[0], COUNT, false}, in = {buf[1], COUNT, false};
	uint64_t at;

	data_init(&data, type, op, ranks);
	data_fill(&data, &acc, DATA_OPERAND, first, 7);
	for (int32_t i = 1; i < ranks; i++) {
		data_fill(&data, &in, DATA_OPERAND, (first + i * step) % ranks, 7);
		reduce_apply(type, op, acc.buf, acc.buf, in.buf, COUNT);
	}
	if (op == WEFT_AVG)
		reduce_scale(type, acc.buf, acc.buf, COUNT, (uint64_t)ranks);
	return data_check(&data, &acc, DATA_RESULT, 0, 7, &at);
}

static void test_results(void)
{
	static const int32_t sizes[] = {1, 2, 3, 4, 7, 64, 300};

	for (int t = 0; t < WEFT_TYPE_COUNT; t++) {
		int bad = 0;

		for (int o = 0; o < WEFT_OP_COUNT; o++)
			for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
				enum weft_type type = (enum weft_type)t;
				enum weft_op op = (enum weft_op)o;

				if (!reduce_supported(type, op))
					continue;
				bad += !reduces_right(type, op, sizes[s], 0, 1);
				bad += !reduces_right(type, op, sizes[s], sizes[s] - 1,
						      sizes[s] > 1 ? sizes[s] - 1 : 1);
			}
		tap_is_int(bad, 0, weft_type_name((enum weft_type)t));
	}
}

/* Every single wrong element of a full check is found, at its place. */
static void test_found(void)
{
	struct data_view v = {buf[0], COUNT, false};
	uint8_t *bytes = (uint8_t *)buf[0];
	int missed = 0;
	char text[64];
	uint64_t at;

	data_init(&data, WEFT_FP16, WEFT_SUM, 4);
	data_fill(&data, &v, DATA_OF_RANK, 2, 1);
	for (uint64_t i = 0; i < COUNT; i++) {
		bytes[2 * i + i % 2] ^= 0x10;
		missed += data_check(&data, &v, DATA_OF_RANK, 2, 1, &at) || at != i;
		bytes[2 * i + i % 2] ^= 0x10;
	}
	tap_is_int(missed, 0, "a wrong element is found where it is");
	tap_ok(!data_check(&data, &v, DATA_OF_RANK, 3, 1, &at),
	       "another rank's data too");
	tap_ok(!data_check(&data, &v, DATA_OF_RANK, 2, 2, &at), "and another round's");
	memmove(bytes, bytes + 2 * 64, 2 * (COUNT - 64));
	tap_ok(!data_check(&data, &v, DATA_OF_RANK, 2, 1, &at), "and what is displaced");
	data_poison(&data, &v);
	tap_ok(!data_check(&data, &v, DATA_OF_RANK, 2, 1, &at) && at == 0,
	       "and what was not written");
	data_explain(&data, &v, DATA_OF_RANK, 2, 1, at, text, sizeof(text));
	tap_ok(strncmp(text, "0xa5a5, must be 0x", 18) == 0, "in words");
}

static void test_samples(void)
{
	struct data_view v = {buf[0], COUNT, true}, full = {buf[0], COUNT, false};
	struct data_view none = {NULL, 0, false}, one = {buf[0], 1, true};
	uint64_t at;

	data_init(&data, WEFT_INT32, WEFT_SUM, 4);
	data_poison(&data, &full);
	data_fill(&data, &v, DATA_OPERAND, 1, 9);
	tap_ok(data_check(&data, &v, DATA_OPERAND, 1, 9, &at), "samples");
	tap_ok(!data_check(&data, &full, DATA_OPERAND, 1, 9, &at),
	       "leave the rest as it was");
	((int32_t *)buf[0])[COUNT - 1]++;
	tap_ok(!data_check(&data, &v, DATA_OPERAND, 1, 9, &at) && at == COUNT - 1,
	       "the last element is one");
	data_fill(&data, &full, DATA_OPERAND, 1, 9);
	data_poison(&data, &v);
	tap_ok(!data_check(&data, &v, DATA_OPERAND, 1, 9, &at) && at == 0,
	       "samples are overwritten");
	data_fill(&data, &one, DATA_OPERAND, 1, 9);
	tap_ok(data_check(&data, &one, DATA_OPERAND, 1, 9, &at), "of one element");
	data_fill(&data, &none, DATA_OPERAND, 1, 9);
	data_poison(&data, &none);
	tap_ok(data_check(&data, &none, DATA_OPERAND, 1, 9, &at), "of none");
}

int main(void)
{
	test_results();
	test_found();
	test_samples();
	return tap_done();
}
