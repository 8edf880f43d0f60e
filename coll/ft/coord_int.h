/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the coordinator's machine only. */
#ifndef WEFT_FT_COORD_INT_H
#define WEFT_FT_COORD_INT_H

#include "coll/ft/coord.h"

/* coord.c */
void ft_coord_set_state(struct ft_coord *c, enum ft_coord_state state);
struct ft_peer *ft_coord_peer(const struct ft_coord *c, uint64_t id); /* or NULL */
void ft_coord_say(struct ft_coord *c, uint64_t id, enum ft_type type);
/* false: the machine is broken now. */
bool ft_coord_save(struct ft_coord *c, enum ft_saved what);
/* Makes a list of who may follow in the next epoch, and prepares it. */
void ft_coord_attempt(struct ft_coord *c);
bool ft_coord_is_alive(const struct ft_coord *c, const struct ft_peer *p);

/* next.c */
/* Lists the next epoch's members in c->next. False: no memory. */
bool ft_next_list(struct ft_coord *c);
/* Whether they are enough for an epoch. */
bool ft_next_suffices(const struct ft_coord *c);
/* Whether it can be let in: it wants, and follows no later coordinator. */
bool ft_next_may_enter(const struct ft_coord *c, const struct ft_peer *p);
/* Whether there is a newcomer with all of its group; whether one waited long enough. */
bool ft_next_newcomers_wait(const struct ft_coord *c);
bool ft_next_newcomers_are_due(const struct ft_coord *c);
bool ft_next_is_leaving(const struct ft_coord *c, uint64_t id);
bool ft_next_somebody_leaves(const struct ft_coord *c);
/* Whether so many leave that there is no next epoch. */
bool ft_next_is_none(const struct ft_coord *c);

/* blame.c */
/* Whether every member that lives has said what became of the step. */
bool ft_blame_is_heard(const struct ft_coord *c);
/* A step failed: puts out whoever has been silent for so long that it need not be waited
 * for. False: nobody is, or too many are. */
bool ft_blame_quiet(struct ft_coord *c);
/* Finds who is to blame that the step could not be run; one that is so again is out. */
void ft_blame_judge(struct ft_coord *c);

/* rebuild.c */
void ft_rebuild_begin(struct ft_coord *c);
void ft_rebuild_state(struct ft_coord *c, struct ft_peer *p, const struct ft_msg *msg);
/* Asks a member for its state, which is a promise; a newcomer only if it must answer. */
void ft_rebuild_ask(struct ft_coord *c, const struct ft_peer *p);
void ft_rebuild_tick(struct ft_coord *c);
/* Somebody has promised a term to another coordinator. */
void ft_rebuild_refused(struct ft_coord *c, uint64_t term);
void ft_rebuild_fini(struct ft_coord *c);

/* Members that must have prepared so that no majority exists without one of them. */
static inline uint32_t ft_half(const struct ft_roster *roster)
{
	return (roster->count + 1) / 2;
}

#endif
