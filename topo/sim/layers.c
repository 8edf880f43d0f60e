/* SPDX-License-Identifier: BSD-2-Clause */
/* See layers.h. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/layers.h"
#include "util/span.h"

#define FORMAT "weft-layers"

struct lines {
	struct layers *layers;
	struct fabric_error *error;
	struct span left; /* of the line */
	unsigned line;
	uint32_t room;
	bool named;
};

__attribute__((format(printf, 2, 3))) static int fail(struct lines *r, const char *fmt,
						      ...)
{
	va_list ap;

	r->error->line = r->line;
	va_start(ap, fmt);
	vsnprintf(r->error->text, sizeof(r->error->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* "1.25ms" in seconds, up to 1000. */
static bool time_take(struct span w, double *s)
{
	static const struct {
		const char *name;
		double unit;
	} units[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
	struct span number = w, whole;
	uint32_t above, below = 0;
	size_t unit = 0;

	while (number.len && !span_digit(number.at[number.len - 1]))
		number.len--;
	w.at += number.len;
	w.len -= number.len;
	while (unit < 4 && !span_is(w, units[unit].name))
		unit++;
	whole = span_cut(&number, '.');
	if (unit == 4 || !span_number(whole, &above) || number.len > 3 ||
	    (number.len && !span_number(number, &below)))
		return false;
	for (size_t i = number.len; i < 3; i++)
		below *= 10;
	*s = (above + below / 1000.0) * units[unit].unit;
	return *s <= 1000;
}

static int add(struct lines *r, struct span name, const struct layer *layer,
	       uint32_t times)
{
	struct layers *l = r->layers;

	if (times > LAYERS_MAX - l->count)
		return fail(r, "layer %.*s: more than %u layers", SPAN_SHOWN(name),
			    LAYERS_MAX);
	if (l->count + times > r->room) {
		const uint32_t room =
			l->count + times > 2 * r->room ? l->count + times : 2 * r->room;
		struct layer *more = realloc(l->layer, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->layer = more;
		r->room = room;
	}
	while (times--)
		l->layer[l->count++] = *layer;
	return 0;
}

static int layer_read(struct lines *r)
{
	const struct span name = span_word(&r->left), bytes = span_word(&r->left);
	struct layer layer;
	uint32_t times = 1;
	bool ahead = false, back = false, told = false;
	struct span w;

	if (!fabric_name_valid(name.at, name.len, FABRIC_PART_MAX))
		return fail(r,
			    "layer \"%.*s\": a name has 1 to %d letters, digits, '.', "
			    "'_' and '-', which isn't the first",
			    SPAN_SHOWN(name), FABRIC_PART_MAX);
	if (!span_bytes(bytes, &layer.bytes) || layer.bytes > LAYER_BYTES_MAX)
		return fail(r,
			    "layer %.*s: \"%.*s\" is no number of bytes, as in 360M, up "
			    "to 1024G",
			    SPAN_SHOWN(name), SPAN_SHOWN(bytes));
	while ((w = span_word(&r->left)).len) {
		const struct span all = w, key = span_cut(&w, '=');

		if (!ahead && span_is(key, "forward") && time_take(w, &layer.forward))
			ahead = true;
		else if (!back && span_is(key, "backward") &&
			 time_take(w, &layer.backward))
			back = true;
		else if (!told && span_is(key, "times") && span_number(w, &times) &&
			 times)
			told = true;
		else
			return fail(r,
				    "layer %.*s: \"%.*s\" is none of forward=1.1ms, "
				    "backward=2.2ms (ns, us, ms or s, up to 1000 s) and "
				    "times=32, each said once",
				    SPAN_SHOWN(name), SPAN_SHOWN(all));
	}
	if (!ahead || !back)
		return fail(r, "layer %.*s has no %s=; write one, as in %s=1.1ms",
			    SPAN_SHOWN(name), ahead ? "backward" : "forward",
			    ahead ? "backward" : "forward");
	return add(r, name, &layer, times);
}

static int line_read(struct lines *r)
{
	const struct span first = span_word(&r->left);
	struct span version, rest;

	if (!first.len)
		return 0;
	if (r->named)
		return span_is(first, "layer")
			       ? layer_read(r)
			       : fail(r, "\"%.*s\": a line begins with \"layer\"",
				      SPAN_SHOWN(first));
	version = span_word(&r->left);
	rest = span_word(&r->left);
	if (!span_is(first, FORMAT) || !span_is(version, "1") || rest.len)
		return fail(r,
			    "\"%.*s\": the first line of a list of layers is \"" FORMAT
			    " 1\"",
			    SPAN_SHOWN(first));
	r->named = true;
	return 0;
}

int layers_parse(const char *text, size_t len, struct layers *layers,
		 struct fabric_error *error)
{
	struct lines r = {.layers = layers, .error = error};
	struct span all = {text, len};
	int rc = 0;

	*layers = (struct layers){0};
	*error = (struct fabric_error){.text = "out of memory"};
	while (!rc && all.len) {
		r.line++;
		r.left = span_line(&all);
		rc = line_read(&r);
	}
	if (!rc && !layers->count) {
		r.line = 0;
		rc = fail(&r, "there is no layer; the first line is \"" FORMAT
			      " 1\", and then come lines like \"layer block 360M "
			      "forward=1.1ms backward=2.2ms times=32\"");
	}
	if (rc)
		layers_free(layers);
	else
		error->text[0] = '\0';
	return rc;
}

int layers_load(const char *path, struct layers *layers, struct fabric_error *error)
{
	FILE *file = fopen(path, "re");
	char *text = file ? malloc(LAYERS_FILE_MAX + 1) : NULL;
	size_t len = 0;
	int rc = file ? text ? 0 : -ENOMEM : -errno;

	*layers = (struct layers){0};
	*error = (struct fabric_error){0};
	if (!rc) {
		len = fread(text, 1, LAYERS_FILE_MAX + 1, file);
		rc = ferror(file) ? -EIO : len > LAYERS_FILE_MAX ? -EFBIG : 0;
	}
	if (rc == -EFBIG)
		snprintf(
			error->text, sizeof(error->text),
			"more than 1 MiB; write layers that are alike once, with times=");
	else if (rc)
		snprintf(error->text, sizeof(error->text), "%s", strerror(-rc));
	else
		rc = layers_parse(text, len, layers, error);
	if (file)
		fclose(file);
	free(text);
	return rc;
}

void layers_free(struct layers *layers)
{
	free(layers->layer);
	*layers = (struct layers){0};
}
