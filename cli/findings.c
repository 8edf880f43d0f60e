/* SPDX-License-Identifier: BSD-2-Clause */
/* See findings.h. */
#include "config.h"

#include "cli/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *level_name(enum level level)
{
	static const char *const names[LEVELS] = {"PASS", "WARN", "FAIL"};

	return level < LEVELS ? names[level] : "?";
}

void findings_add(struct findings *f, enum level level, const char *name,
		  const char *cure, const char *fmt, ...)
{
	struct finding *new;
	va_list args;

	if (f->count >= FINDINGS_MAX)
		return;
	new = &f->list[f->count++];
	memset(new, 0, sizeof(*new)); /* they are compared as bytes */
	new->level = level;
	snprintf(new->name, sizeof(new->name), "%s", name);
	snprintf(new->cure, sizeof(new->cure), "%s", cure ? cure : "");
	va_start(args, fmt);
	vsnprintf(new->figure, sizeof(new->figure), fmt, args);
	va_end(args);
}

static int set_count(const struct findings *set)
{
	return set->count < 0 || set->count > FINDINGS_MAX ? 0 : set->count;
}

/* Whether the set says the same. */
static bool says(const struct findings *set, const struct finding *one)
{
	for (int i = 0; i < set_count(set); i++)
		if (memcmp(&set->list[i], one, sizeof(*one)) == 0)
			return true;
	return false;
}

/* One finding, and which of the sets have it. */
struct merged {
	struct finding f;
	char where[FINDING_TEXT]; /* hosts; "": all of them, or of none in particular */
};

/* Hosts that say it, unless all do. A host with several ranks is named once. */
static void where_of(const struct findings *sets, int count, const struct finding *one,
		     char where[FINDING_TEXT])
{
	size_t used = 0;
	int missing = 0;

	where[0] = '\0';
	for (int i = 0; i < count; i++) {
		const char *host = sets[i].host;
		const size_t len = strnlen(host, FINDING_HOST - 1);
		bool named = len == 0;

		if (!says(&sets[i], one)) {
			missing += len > 0;
			continue;
		}
		for (int k = 0; k < i && !named; k++)
			named = strncmp(sets[k].host, host, FINDING_HOST) == 0 &&
				says(&sets[k], one);
		if (named || used + len + 3 > FINDING_TEXT)
			continue;
		used += (size_t)snprintf(where + used, FINDING_TEXT - used, "%s%.*s",
					 used ? ", " : "", (int)len, host);
	}
	if (!missing)
		where[0] = '\0';
}

/* The next that no set before it has said; false: there is none. *set and *at go on. */
static bool next_of(const struct findings *sets, int count, int *set, int *at,
		    struct merged *m)
{
	for (; *set < count; (*set)++, *at = 0) {
		while (*at < set_count(&sets[*set])) {
			const struct finding *one = &sets[*set].list[(*at)++];
			bool before = false;

			for (int k = 0; k < *set && !before; k++)
				before = says(&sets[k], one);
			if (before || one->level >= LEVELS)
				continue;
			where_of(sets, count, one, m->where);
			m->f = *one;
			m->f.name[FINDING_NAME - 1] = '\0';
			m->f.figure[FINDING_TEXT - 1] = '\0';
			m->f.cure[FINDING_TEXT - 1] = '\0';
			return true;
		}
	}
	return false;
}

void findings_text(const struct findings *sets, int count, int total[LEVELS])
{
	struct merged m;
	int set = 0, at = 0;

	while (next_of(sets, count, &set, &at, &m)) {
		total[m.f.level]++;
		printf("%s  %-18s %s%s%s%s\n", level_name((enum level)m.f.level),
		       m.f.name, m.f.figure, m.where[0] ? " [" : "", m.where,
		       m.where[0] ? "]" : "");
		if (m.f.cure[0])
			printf("      %-18s -> %s\n", "", m.f.cure);
	}
}

void findings_json(struct json *j, const struct findings *sets, int count,
		   int total[LEVELS])
{
	struct merged m;
	int set = 0, at = 0;

	while (next_of(sets, count, &set, &at, &m)) {
		total[m.f.level]++;
		json_object_begin(j, NULL);
		json_text(j, "level", level_name((enum level)m.f.level));
		json_text(j, "name", m.f.name);
		json_text(j, "found", m.f.figure);
		json_text(j, "cure", m.f.cure[0] ? m.f.cure : NULL);
		json_text(j, "hosts", m.where[0] ? m.where : NULL);
		json_object_end(j);
	}
}
