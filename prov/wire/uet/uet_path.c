/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns, penalties, and who is retired. */
#include "config.h"

#include <string.h>

#include "prov/wire/uet/uet_path.h"

#define PENALTY_MARK 1u
#define PENALTY_LOSS 4u
#define PENALTY_MAX  15u
#define SHARE	     2u

static uint64_t draw(struct uet_paths *p)
{
	p->random ^= p->random >> 12;
	p->random ^= p->random << 25;
	p->random ^= p->random >> 27;
	return p->random * UINT64_C(0x2545f4914f6cdd1d);
}

/* Turns of a round: the power of two that is enough for all paths. */
static uint32_t round_of(const struct uet_paths *p)
{
	uint32_t round = 1;

	while (round < p->config.paths)
		round *= 2;
	return round;
}

bool uet_paths_init(struct uet_paths *p, const struct uet_path_config *config,
		    uint64_t seed)
{
	uint32_t all =
		config->paths < 32 ? (UINT32_C(1) << config->paths) - 1 : UINT32_MAX;

	if (config->paths == 0 || config->paths > UET_PATHS_MAX || config->burst == 0 ||
	    config->strikes == 0 || config->retry_min == 0 ||
	    config->retry_max < config->retry_min || config->first & ~all)
		return false;
	memset(p, 0, sizeof(*p));
	p->config = *config;
	p->used = config->first ? config->first : all;
	for (uint32_t i = 0; i < config->paths; i++)
		p->ways += p->used >> i & 1;
	p->burst = config->burst;
	p->share = SHARE;
	p->random = seed | 1;
	p->mask = (uint32_t)draw(p) & (round_of(p) - 1);
	return true;
}

static bool is_used(const struct uet_paths *p, uint32_t path)
{
	return p->used >> path & 1;
}

void uet_paths_try(struct uet_paths *p, uint32_t path_no, uint64_t now)
{
	struct uet_path *path = &p->path[path_no];

	if (!is_used(p, path_no)) {
		p->used |= UINT32_C(1) << path_no;
		p->ways++;
	}
	if (!path->retired)
		p->retired++;
	path->retired = true;
	path->trying = false;
	path->retry = p->config.retry_min;
	path->retry_at = now;
}

/* Each path has work while the others have their turns, or bursts would leave some of
 * them idle, and look like losses on those. */
void uet_paths_window(struct uet_paths *p, uint64_t packets, uint64_t piece)
{
	uint64_t burst = packets / (p->share * (uint64_t)p->ways);

	burst = burst < p->config.burst_max ? burst : p->config.burst_max;
	if (piece && burst > piece)
		burst -= burst % piece;
	p->burst = burst > p->config.burst ? (uint32_t)burst : p->config.burst;
	p->whole = piece && p->burst % piece == 0;
}

void uet_paths_piece(struct uet_paths *p)
{
	if (p->whole)
		p->left = 0;
}

void uet_paths_turn(struct uet_paths *p)
{
	p->left = 0;
}

/* The path whose turn it is; a round is over: another order. */
static uint32_t next_turn(struct uet_paths *p)
{
	uint32_t round = round_of(p);
	uint32_t i;

	do {
		i = (p->turn ^ p->mask) & (round - 1);
		p->turn++;
		if (p->turn % round == 0)
			p->mask = (uint32_t)(draw(p) >> 32);
	} while (i >= p->config.paths);
	return i;
}

/* One packet shows whether it is well again. */
static bool try_again(struct uet_path *path, uint64_t now)
{
	if (now < path->retry_at)
		return false;
	path->trying = true;
	path->retry_at = now + path->retry;
	return true;
}

/* Nobody is free of penalties: who has been retired the longest, or has the least. */
static uint32_t least_bad(const struct uet_paths *p)
{
	uint32_t best = (uint32_t)__builtin_ctz(p->used);

	for (uint32_t i = best + 1; i < p->config.paths; i++) {
		const struct uet_path *a = &p->path[i], *b = &p->path[best];

		if (!is_used(p, i))
			continue;
		if (a->retired != b->retired ? b->retired
		    : a->retired	     ? a->retry_at < b->retry_at
					     : a->penalty < b->penalty)
			best = i;
	}
	return best;
}

static uint32_t choose(struct uet_paths *p, uint64_t now)
{
	for (uint32_t n = 0; n < 2 * p->config.paths; n++) {
		uint32_t i = next_turn(p);
		struct uet_path *path = &p->path[i];

		if (!is_used(p, i))
			continue;
		p->left = p->burst;
		if (path->retired) {
			if (!try_again(path, now))
				continue;
			p->left = 1;
			return i;
		}
		if (path->penalty == 0)
			return i;
		path->penalty--;
	}
	return least_bad(p);
}

uint32_t uet_paths_pick(struct uet_paths *p, uint64_t now, uint32_t *number)
{
	if (p->left == 0 || (p->path[p->now].retired && !p->path[p->now].trying))
		p->now = choose(p, now);
	p->left--;
	*number = (uint32_t)++p->path[p->now].sent;
	return p->now;
}

/* Drawn: taken in turn, those that go together would always meet the same paths. */
uint32_t uet_paths_control(struct uet_paths *p)
{
	for (uint32_t n = 0; n < 2 * p->config.paths; n++) {
		uint64_t r = draw(p) >> 32;
		uint32_t i = (uint32_t)r % p->config.paths;

		if (is_used(p, i) && (!p->path[i].retired || r >> 28 == 0))
			return i;
	}
	return is_used(p, p->now) ? p->now : least_bad(p);
}

static void came_through(struct uet_paths *p, struct uet_path *path, uint32_t number,
			 uint64_t now)
{
	if (!path->any || (int32_t)(number - path->delivered) > 0)
		path->delivered = number;
	path->any = true;
	path->heard_at = now;
	path->strikes = 0;
	path->retry = p->config.retry_min;
	if (!path->retired)
		return;
	path->retired = path->trying = false;
	path->penalty = 0;
	p->retired--;
	p->returns++;
}

static void retry_failed(struct uet_paths *p, struct uet_path *path, uint64_t now)
{
	if (!path->trying)
		return;
	path->trying = false;
	path->retry = path->retry < p->config.retry_max / 2 ? path->retry * 2
							    : p->config.retry_max;
	path->retry_at = now + path->retry;
}

/* The last that was left has failed as well: the others can't be worse. */
static void all_back(struct uet_paths *p)
{
	for (uint32_t i = 0; i < p->config.paths; i++) {
		struct uet_path *path = &p->path[i];

		path->retired = path->trying = false;
		path->strikes = path->penalty = 0;
	}
	p->retired = 0; /* those that aren't used never were */
}

static void strike(struct uet_paths *p, struct uet_path *path, uint64_t now)
{
	if (++path->strikes < p->config.strikes || p->ways == 1)
		return;
	if (p->retired + 1 == p->ways)
		all_back(p);
	path->retired = true;
	path->trying = false;
	path->retry = p->config.retry_min;
	path->retry_at = now + path->retry;
	path->retirements++;
	p->retired++;
	p->retirements++;
}

static void went_missing(struct uet_paths *p, struct uet_path *path, uint32_t number,
			 uint64_t now)
{
	if (path->any && (int32_t)(path->delivered - number) > 0)
		return;
	if (path->retired)
		retry_failed(p, path, now);
	else
		strike(p, path, now);
}

static void punish(struct uet_path *path, uint32_t penalty)
{
	path->penalty += penalty;
	if (path->penalty > PENALTY_MAX)
		path->penalty = PENALTY_MAX;
}

void uet_paths_news(struct uet_paths *p, uint32_t path_no, uint32_t number,
		    enum uet_path_news news, uint64_t now)
{
	struct uet_path *path = &p->path[path_no];

	path->lost += news != UET_PATH_DELIVERED && news != UET_PATH_MARKED;
	switch (news) {
	case UET_PATH_MARKED:
		path->marks = true;
		punish(path, PENALTY_MARK);
		came_through(p, path, number, now);
		break;
	case UET_PATH_DELIVERED:
		came_through(p, path, number, now);
		break;
	case UET_PATH_LOST:
		punish(path, PENALTY_LOSS);
		break;
	case UET_PATH_SILENT:
		punish(path, PENALTY_LOSS);
		went_missing(p, path, number, now);
		break;
	case UET_PATH_TIMEOUT:
		/* Of the last that is left it does: the others are there to be tried. */
		if (p->retired + 1 == p->ways)
			went_missing(p, path, number, now);
		uet_paths_turn(p);
		break;
	}
}
