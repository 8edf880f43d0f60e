/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who takes part: an epoch is a list of members. Epochs are numbered by the coordinator's
 * term first, so that two coordinators never give the same number to different lists.
 *
 * A term is a count in its high half and, in its low half, the lineage of the coordinator
 * that took it: the same for all lives of one that kept its state, another for any other.
 */
#ifndef WEFT_FT_ROSTER_H
#define WEFT_FT_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FT_CARD_MAX = 96,      /* bytes that say how a member is reached */
	FT_MEMBERS_MAX = 4096, /* of one epoch */
};

struct ft_epoch {
	uint64_t term, seq; /* both 0: no epoch */
};

/* How far steps have come: the last that counts, and the epoch that made it count. */
struct ft_commit {
	struct ft_epoch epoch;
	uint64_t step; /* 0: none yet */
};

struct ft_entry {
	uint64_t id;	       /* drawn by the member; of one life of one process */
	uint32_t group;	       /* members of a group come and go together */
	uint32_t card_len;     /* FT_CARD_MAX at most */
	struct ft_epoch since; /* the first epoch with this member */
	uint8_t card[FT_CARD_MAX];
};

/* Sorted by group, then id: places in the list are the ranks of the epoch. */
struct ft_roster {
	struct ft_epoch epoch;
	uint32_t count, room;
	struct ft_entry *entry; /* owned */
};

static inline uint32_t ft_lineage(uint64_t term)
{
	return (uint32_t)term;
}

/* The next term of a lineage that is above another term. */
static inline uint64_t ft_term_above(uint64_t term, uint32_t lineage)
{
	return ((term >> 32) + 1) << 32 | lineage;
}

static inline int ft_epoch_cmp(struct ft_epoch a, struct ft_epoch b)
{
	if (a.term != b.term)
		return a.term < b.term ? -1 : 1;
	return a.seq < b.seq ? -1 : a.seq > b.seq;
}

static inline bool ft_epoch_same(struct ft_epoch a, struct ft_epoch b)
{
	return a.term == b.term && a.seq == b.seq;
}

static inline bool ft_epoch_none(struct ft_epoch a)
{
	return a.term == 0 && a.seq == 0;
}

static inline bool ft_commit_same(struct ft_commit a, struct ft_commit b)
{
	return a.step == b.step && ft_epoch_same(a.epoch, b.epoch);
}

void ft_roster_fini(struct ft_roster *roster);

/* Empty, of no epoch; keeps its memory. */
void ft_roster_clear(struct ft_roster *roster);

/* false: no memory, or FT_MEMBERS_MAX are there; the roster is as it was. Keeps the
 * order; an id that is there already is replaced. */
bool ft_roster_add(struct ft_roster *roster, const struct ft_entry *entry);

/* false: no memory; to is as it was. */
bool ft_roster_copy(struct ft_roster *to, const struct ft_roster *from);

/* Exchanges the two. */
void ft_roster_swap(struct ft_roster *a, struct ft_roster *b);

/* The place of an id, or -1. */
int ft_roster_find(const struct ft_roster *roster, uint64_t id);

/* Takes out whoever is of a group with less than `size` members in the list. */
void ft_roster_whole_groups(struct ft_roster *roster, uint32_t size);

#endif
