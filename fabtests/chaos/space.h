/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network of the ranks: namespaces ("seats") with a link each to a bridge, which is
 * in the namespace of the caller, with the coordinator. A seat is cut by taking its link
 * from the bridge: nothing gets through in either direction, and nobody is told; two
 * seats are parted by letting each talk to the bridge only. All of it ends with the
 * processes in it.
 */
#ifndef FABTESTS_CHAOS_SPACE_H
#define FABTESTS_CHAOS_SPACE_H

#include <stdbool.h>
#include <sys/types.h>

enum { SPACE_SEATS = 64 };

#define SPACE_HUB "10.77.0.254"

struct space {
	int seats;
	pid_t holder[SPACE_SEATS]; /* processes that keep the namespaces */
};

/* The caller is root in a network namespace of its own, which is used for nothing else.
 * false: said on stderr. */
bool space_open(struct space *s, int seats);
void space_close(struct space *s);

/* In a child, before it opens anything. */
bool space_enter(const struct space *s, int seat);

bool space_cut(const struct space *s, int seat);
bool space_heal(const struct space *s, int seat);
bool space_part(const struct space *s, int a, int b, bool apart);

#endif
