/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/dqplb/rails.h"

#include <stdio.h>
#include <string.h>

#include "topo/fabric/place.h"

static bool fail(struct dqplb_rails_error *error, const char *name, size_t len,
		 const char *why)
{
	snprintf(error->text, sizeof(error->text), "rail \"%.*s\": %s",
		 len > 40 ? 40 : (int)len, name, why);
	return false;
}

static bool name_add(struct dqplb_rails *r, const char *name, size_t len,
		     struct dqplb_rails_error *error)
{
	if (!fabric_name_valid(name, len, DQPLB_RAIL_NAME))
		return fail(error, name, len,
			    "write \"all\", names as in \"mlx5_0,mlx5_1\", or all but "
			    "some as in \"^mlx5_2\"");
	if (r->count == DQPLB_RAILS_MAX)
		return fail(error, name, len, "more than 16 are named");
	for (unsigned i = 0; i < r->count; i++)
		if (strlen(r->name[i]) == len && memcmp(r->name[i], name, len) == 0)
			return fail(error, name, len, "it is named a second time");
	memcpy(r->name[r->count], name, len);
	r->name[r->count][len] = '\0';
	r->count++;
	return true;
}

bool dqplb_rails_parse(const char *text, struct dqplb_rails *rails,
		       struct dqplb_rails_error *error)
{
	struct dqplb_rails r = {.all = strcmp(text, "all") == 0};
	const char *comma;

	if (r.all) {
		*rails = r;
		return true;
	}
	if (text[0] == '^') {
		r.except = true;
		text++;
	}
	do {
		comma = strchr(text, ',');
		if (!name_add(&r, text, comma ? (size_t)(comma - text) : strlen(text),
			      error))
			return false;
		text = comma ? comma + 1 : text;
	} while (comma);
	*rails = r;
	return true;
}

static size_t index_of(const char *name, const char *const names[], size_t count)
{
	size_t i = 0;

	while (i < count && strcmp(names[i], name) != 0)
		i++;
	return i;
}

static bool is_named(const struct dqplb_rails *r, const char *name)
{
	for (unsigned i = 0; i < r->count; i++)
		if (strcmp(r->name[i], name) == 0)
			return true;
	return false;
}

size_t dqplb_rails_choose(const struct dqplb_rails *rails, const char *const names[],
			  size_t count, size_t chosen[], struct dqplb_rails_error *error)
{
	size_t found = 0;

	/* A name that isn't there is a mistake, also among those that are not wanted. */
	for (unsigned i = 0; i < rails->count; i++) {
		size_t at = index_of(rails->name[i], names, count);

		if (at == count) {
			fail(error, rails->name[i], strlen(rails->name[i]),
			     "there is no such NIC here");
			return 0;
		}
		if (!rails->except)
			chosen[found++] = at;
	}
	for (size_t i = 0; i < count && (rails->all || rails->except); i++)
		if (!is_named(rails, names[i]))
			chosen[found++] = i;
	if (found == 0)
		snprintf(error->text, sizeof(error->text), "%s",
			 count ? "every NIC is excluded" : "there is no NIC here");
	return found;
}
