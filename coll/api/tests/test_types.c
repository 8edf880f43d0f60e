/* SPDX-License-Identifier: BSD-2-Clause */
/* Every value of the three enums has a name of its own; every other value has none. */
#include "config.h"

#include "util/tap.h"
#include "weft/weft.h"

static const char *name_of_type(int i)
{
	return weft_type_name((enum weft_type)i);
}

static const char *name_of_op(int i)
{
	return weft_op_name((enum weft_op)i);
}

static const char *name_of_coll(int i)
{
	return weft_coll_name((enum weft_coll)i);
}

static void check_names(const char *what, const char *(*name)(int), int count)
{
	int bad = 0;

	for (int i = 0; i < count; i++) {
		if (!name(i) || !name(i)[0] || strcmp(name(i), "?") == 0)
			bad++;
		for (int j = 0; j < i; j++)
			bad += name(i) && name(j) && strcmp(name(i), name(j)) == 0;
	}
	tap_is_int(bad, 0, what);
	tap_ok(strcmp(name(count), "?") == 0 && strcmp(name(-1), "?") == 0,
	       "%s: outside the enum is \"?\"", what);
}

int main(void)
{
	size_t total = 0;

	check_names("types have names", name_of_type, WEFT_TYPE_COUNT);
	check_names("operations have names", name_of_op, WEFT_OP_COUNT);
	check_names("collectives have names", name_of_coll, WEFT_COLL_COUNT);
	for (int i = 0; i < WEFT_TYPE_COUNT; i++)
		total += weft_type_size((enum weft_type)i);
	tap_is_int((int64_t)total, 2 * (1 + 2 + 4 + 8) + 2 * 2 + 2 * 1 + 4 + 8,
		   "sizes of all types");
	tap_is_int((int64_t)weft_type_size(WEFT_BF16), 2, "bf16 has two bytes");
	tap_is_int((int64_t)weft_type_size(WEFT_TYPE_COUNT), 0, "no type, no size");
	tap_is_int((int64_t)weft_type_size((enum weft_type) - 1), 0, "-1 is no type");
	tap_is_str(weft_type_name(WEFT_FP32), "fp32", "fp32 is called fp32");
	tap_is_str(weft_op_name(WEFT_SUM), "sum", "sum is called sum");
	tap_is_str(weft_coll_name(WEFT_COLL_ALLREDUCE), "allreduce",
		   "allreduce is called allreduce");
	return tap_done();
}
