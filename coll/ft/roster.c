/* SPDX-License-Identifier: BSD-2-Clause */
/* See roster.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/ft/roster.h"

void ft_roster_fini(struct ft_roster *roster)
{
	free(roster->entry);
	memset(roster, 0, sizeof(*roster));
}

void ft_roster_clear(struct ft_roster *roster)
{
	roster->epoch = (struct ft_epoch){0, 0};
	roster->count = 0;
}

static bool roster_reserve(struct ft_roster *roster, uint32_t count)
{
	uint32_t room = roster->room ? roster->room : 8;
	struct ft_entry *entry;

	if (count > FT_MEMBERS_MAX)
		return false;
	if (count <= roster->room)
		return true;
	while (room < count)
		room *= 2;
	entry = realloc(roster->entry, (size_t)room * sizeof(*entry));
	if (!entry)
		return false;
	roster->entry = entry;
	roster->room = room;
	return true;
}

static bool entry_before(const struct ft_entry *a, const struct ft_entry *b)
{
	return a->group != b->group ? a->group < b->group : a->id < b->id;
}

bool ft_roster_add(struct ft_roster *roster, const struct ft_entry *entry)
{
	int at = ft_roster_find(roster, entry->id);
	uint32_t i;

	if (at >= 0) {
		memmove(&roster->entry[at], &roster->entry[at + 1],
			(size_t)(roster->count - (uint32_t)at - 1) * sizeof(*entry));
		roster->count--;
	}
	if (!roster_reserve(roster, roster->count + 1))
		return false;
	for (i = roster->count; i > 0 && entry_before(entry, &roster->entry[i - 1]); i--)
		roster->entry[i] = roster->entry[i - 1];
	roster->entry[i] = *entry;
	roster->count++;
	return true;
}

bool ft_roster_copy(struct ft_roster *to, const struct ft_roster *from)
{
	if (!roster_reserve(to, from->count))
		return false;
	if (from->count)
		memcpy(to->entry, from->entry, (size_t)from->count * sizeof(*to->entry));
	to->count = from->count;
	to->epoch = from->epoch;
	return true;
}

void ft_roster_swap(struct ft_roster *a, struct ft_roster *b)
{
	struct ft_roster c = *a;

	*a = *b;
	*b = c;
}

int ft_roster_find(const struct ft_roster *roster, uint64_t id)
{
	for (uint32_t i = 0; i < roster->count; i++) {
		if (roster->entry[i].id == id)
			return (int)i;
	}
	return -1;
}

void ft_roster_whole_groups(struct ft_roster *roster, uint32_t size)
{
	uint32_t kept = 0, first = 0;

	for (uint32_t i = 0; i < roster->count; i++) {
		bool last = i + 1 == roster->count ||
			    roster->entry[i + 1].group != roster->entry[i].group;

		if (!last)
			continue;
		if (i + 1 - first >= size) {
			memmove(&roster->entry[kept], &roster->entry[first],
				(size_t)(i + 1 - first) * sizeof(*roster->entry));
			kept += i + 1 - first;
		}
		first = i + 1;
	}
	roster->count = kept;
}
