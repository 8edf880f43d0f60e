/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A member for coordinator.t: ft_member ADDRESS STEPS. Joins with the secret that
 * WEFT_JOB says, runs so many steps, leaves, and says how it went on one line.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/ft/link.h"

enum { WAIT_US = 60000000 };

/* Takes what comes until the member is out; runs steps until `steps` count. */
static bool take_part(struct ft_link *link, uint64_t steps)
{
	struct ft_link_event e = {0};
	bool good = false;

	while (ft_link_wait(link, &e, WAIT_US) == 0) {
		if (e.event == FT_RUN)
			ft_link_done(link, e.roster.epoch, true, 0);
		if (e.event == FT_COMMITTED)
			printf("step %" PRIu64 " of %u\n", e.step, e.live);
		fflush(stdout);
		if (e.event == FT_FENCED_OUT) {
			printf("out: %s\n", ft_reason_name(e.reason));
			good = true;
			break;
		}
		if (e.event != FT_JOINED && e.event != FT_COMMITTED)
			continue;
		if (e.commit.step < steps)
			ft_link_begin(link);
		else
			ft_link_leave(link);
	}
	ft_roster_fini(&e.roster);
	return good;
}

int main(int argc, char **argv)
{
	const char *secret = getenv("WEFT_JOB");
	struct ft_link_attr attr = {.sign = 1};
	char why[FT_LINK_WHY];
	struct ft_link *link;
	bool good;

	if (argc != 3 || !secret || strlen(secret) > sizeof(attr.job))
		return 2;
	memcpy(attr.job, secret, strlen(secret));
	attr.coordinator = argv[1];
	if (ft_link_open(&attr, &link, why)) {
		fprintf(stderr, "ft_member: %s\n", why);
		return 1;
	}
	good = take_part(link, strtoull(argv[2], NULL, 10));
	if (!good) {
		struct ft_link_status status;

		ft_link_status(link, &status);
		fprintf(stderr, "ft_member: nothing comes: %s\n", status.why);
	}
	ft_link_close(link);
	return good ? 0 : 1;
}
