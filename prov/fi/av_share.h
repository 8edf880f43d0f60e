/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses of a vector that several processes have (a named vector, FI_SHARED_AV):
 * rows in sealed memory, of which each process keeps a copy in its own table. Rows are
 * only appended and never used again, so that a handle means the same everywhere.
 *
 * The process that made the name answers for it by a thread, which hands the memory to
 * whoever asks and may; the name is an abstract socket and goes with that process. Those
 * who have the memory go on without it. Nothing of this is in the file system.
 *
 * What others write is believed as far as it is a valid address; whoever can write is a
 * process of the same user.
 */
#ifndef WEFT_FI_AV_SHARE_H
#define WEFT_FI_AV_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/addr.h"

struct av_share;

enum av_share_state {
	AV_SHARE_EMPTY, /* nobody's, being written, or no address */
	AV_SHARE_USED,
	AV_SHARE_GONE, /* removed */
};

/*
 * read_only: the name must be there (-FI_ENOENT). Else it is made if it isn't, with room
 * for `count` addresses at least. -FI_EINVAL: no name, or too long; -FI_EACCES: another
 * user's; -FI_EOTHER: what answers is no vector of this version; -FI_ETIMEDOUT: nothing
 * answers; -FI_ENOMEM, -FI_EMFILE.
 */
int av_share_open(const char *name, bool read_only, size_t count, struct av_share **out);
void av_share_close(struct av_share *s);
bool av_share_is_read_only(const struct av_share *s);

/* Number of the row; -FI_ENOMEM: no room. Not read only. */
int av_share_add(struct av_share *s, const struct wire_addr *addr, uint32_t *index);
void av_share_remove(struct av_share *s, uint32_t index);

/* Another value whenever a row was added or removed. */
uint32_t av_share_changes(const struct av_share *s);
/* Rows are below this. */
uint32_t av_share_limit(const struct av_share *s);
enum av_share_state av_share_row(const struct av_share *s, uint32_t index,
				 struct wire_addr *addr);
/* Handles by number of the insertion, where this process sees them (FI_AV_MAP). */
const uint64_t *av_share_handles(const struct av_share *s);

#endif
