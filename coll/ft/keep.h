/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a coordinator keeps, in a file: the job's state as the machine last gave it to
 * save() (coord.h). One coordinator at a time has the file: it is locked.
 *
 * Terms and epochs replace the file; a COMMIT is appended to it, since there is one for
 * each step. Either is on the disk when ft_keep_save() returns. What a crash cut short at
 * the end of the file was never said to be durable, and is dropped.
 */
#ifndef WEFT_FT_KEEP_H
#define WEFT_FT_KEEP_H

#include "coll/ft/coord.h"

struct ft_keep;

/* Opens or makes the file. *kept is what is in it, for ft_coord_init(), owned by keep and
 * valid until the next save; NULL: nothing yet. job has FT_JOB_LEN bytes: a file of
 * another job is refused. Negative errno, and why as a sentence (FT_KEEP_WHY bytes). */
enum { FT_KEEP_WHY = 500 };
int ft_keep_open(const char *path, const uint8_t *job, struct ft_keep **keep,
		 const struct ft_durable **kept, char why[FT_KEEP_WHY]);
void ft_keep_close(struct ft_keep *keep); /* may be NULL */

/* As save() of the machine: true when it is durable; after false nothing more is. */
bool ft_keep_save(struct ft_keep *keep, enum ft_saved what, const struct ft_durable *d);

/* Why the last save failed. */
const char *ft_keep_why(const struct ft_keep *keep);

#endif
