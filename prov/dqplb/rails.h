/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rails (NICs) a user wants: FI_WEFT_RAILS is "all", a list as in "mlx5_0,mlx5_1",
 * in whose order they are taken, or all but a list, as in "^mlx5_2". Pure, like
 * profile.h.
 */
#ifndef WEFT_DQPLB_RAILS_H
#define WEFT_DQPLB_RAILS_H

#include <stdbool.h>
#include <stddef.h>

#define DQPLB_RAILS_MAX 16u
#define DQPLB_RAIL_NAME 31 /* longest, without the zero byte */

struct dqplb_rails {
	bool all;    /* that there are, */
	bool except; /* but these */
	unsigned count;
	char name[DQPLB_RAILS_MAX][DQPLB_RAIL_NAME + 1];
};

struct dqplb_rails_error {
	char text[200];
};

/* False: *error says what was asked and what may be; *rails is untouched. */
bool dqplb_rails_parse(const char *text, struct dqplb_rails *rails,
		       struct dqplb_rails_error *error);

/*
 * Chooses among `count` names: their indices in order of use, to chosen[], which has room
 * for `count`. Returns how many; 0: *error says which name isn't there, or that none is
 * left.
 */
size_t dqplb_rails_choose(const struct dqplb_rails *rails, const char *const names[],
			  size_t count, size_t chosen[], struct dqplb_rails_error *error);

#endif
