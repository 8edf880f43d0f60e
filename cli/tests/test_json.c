/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON writer: nesting, commas, what must be escaped, what is no number. */
#include "config.h"

#include <math.h>

#include "cli/json.h"
#include "util/tap.h"

static const char want[] = "{\n"
			   "  \"text\": \"a\\\"b\\\\c\\u0001\\u000a\",\n"
			   "  \"utf8\": \"\xc3\xa4 \xe2\x82\xac \xf0\x9f\xa6\x86\",\n"
			   "  \"none\": null,\n"
			   "  \"empty\": [],\n"
			   "  \"list\": [\n"
			   "    -9223372036854775808,\n"
			   "    18446744073709551615,\n"
			   "    {},\n"
			   "    1.5,\n"
			   "    null,\n"
			   "    null,\n"
			   "    true,\n"
			   "    false\n"
			   "  ],\n"
			   "  \"last\": 1\n"
			   "}\n";

static void write_all(FILE *f)
{
	struct json j;

	json_init(&j, f);
	json_object_begin(&j, NULL);
	json_text(&j, "text", "a\"b\\c\x01\n");
	json_text(&j, "utf8", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\xa6\x86");
	json_text(&j, "none", NULL);
	json_array_begin(&j, "empty");
	json_array_end(&j);
	json_array_begin(&j, "list");
	json_int(&j, NULL, INT64_MIN);
	json_uint(&j, NULL, UINT64_MAX);
	json_object_begin(&j, NULL);
	json_object_end(&j);
	json_real(&j, NULL, 1.5);
	json_real(&j, NULL, (double)NAN);
	json_real(&j, NULL, (double)INFINITY);
	json_bool(&j, NULL, true);
	json_bool(&j, NULL, false);
	json_array_end(&j);
	json_int(&j, "last", 1);
	json_object_end(&j);
	json_fini(&j);
}

/* Text of one string value. */
static void text_is(const char *text, const char *expected, const char *what)
{
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);
	struct json j;

	json_init(&j, f);
	json_text(&j, NULL, text);
	json_fini(&j);
	fclose(f);
	tap_is_str(out, expected, what);
	free(out);
}

int main(void)
{
	char *out = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&out, &len);

	write_all(f);
	fclose(f);
	tap_is_str(out, want, "a document");
	free(out);
	text_is("a\xff", "\"a\\ufffd\"\n", "a byte that is no UTF-8");
	text_is("\xc3", "\"\\ufffd\"\n", "a sequence that breaks off");
	text_is("\xc0\xaf", "\"\\ufffd\\ufffd\"\n", "an overlong form");
	text_is("\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"\n", "a surrogate");
	text_is("\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n",
		"beyond Unicode");
	return tap_done();
}
