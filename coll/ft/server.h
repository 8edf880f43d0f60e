/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The coordinator as a server: owns the machine (coord.h) and what it keeps, and speaks
 * with the members over TCP. In a thread of some process, or in one of its own (`weft
 * coordinator`).
 *
 * Nothing of a connection is used before its message was checked, secret first. Who says
 * nothing valid in time is closed, who doesn't read what is said to it is dropped as
 * lost, and neither keeps the others waiting. Connections are bounded in number.
 */
#ifndef WEFT_FT_SERVER_H
#define WEFT_FT_SERVER_H

#include "coll/ft/coord.h"

struct ft_server;

enum { FT_SERVER_WHY = 600, FT_SERVER_ADDRESS = 80 };

struct ft_server_attr {
	const char *listen;	 /* "host:port"; port 0: the system chooses */
	const char *state;	 /* the file in which it keeps what it must, or
				  * "etcd://host:port/prefix" */
	uint8_t job[FT_JOB_LEN]; /* the secret, padded with zeros */
	bool first; /* the job never had a coordinator: the file must not be there. Else
		     * one that isn't there is lost, and the state comes from the members
		     */
	uint32_t size;	     /* members that the first epoch waits for; at least 1 */
	uint32_t group_size; /* 0: 1 */
	uint32_t conns_most; /* 0: as many as there can be members, and strangers */
	size_t out_most;     /* bytes that may wait for a member; 0: FT_STREAM_OUT_MOST */
	int64_t silence_us;  /* who says nothing for so long is dead; this and all that
			      * follow, 0: as FT_SERVER_*_US */
	int64_t return_us;   /* whose connection broke has so long to make another */
	int64_t prepare_us;  /* as in coord.h */
	int64_t rebuild_us;
	int64_t join_us;
	int64_t blame_us;
	int64_t stranger_us; /* for a connection's first message */
	/* What happens, a line at a time, from within run(); NULL: nobody wants to know
	 */
	void (*note)(void *arg, const char *line);
	void *note_arg;
};

#define FT_SERVER_SILENCE_US  3000000
#define FT_SERVER_STRANGER_US 5000000

struct ft_server_status {
	enum ft_coord_state state;
	uint64_t term;
	struct ft_epoch epoch;
	struct ft_commit commit;
	uint32_t members; /* of the epoch */
	uint32_t conns, conns_known;
	uint64_t accepted, refused; /* refused: sent what is no message of the job, said
				     * nothing in time, or were too many */
	uint64_t slow, lost;	    /* dropped, since they didn't read; did not return */
};

/* Takes the file and the address; the machine is on from here. Negative errno, and why
 * as a sentence; -EAGAIN: another coordinator leads, by the store that they share. */
int ft_server_open(const struct ft_server_attr *attr, struct ft_server **server,
		   char why[FT_SERVER_WHY]);

/* "127.0.0.1:4711": where it listens. */
const char *ft_server_address(const struct ft_server *server);

/* Serves. 0: stopped, or everybody has left; -ESTALE: another coordinator has taken over;
 * another negative errno: it can't go on. Then why. One thread, once. */
int ft_server_run(struct ft_server *server, char why[FT_SERVER_WHY]);

/* Makes run() return, now or when it is called. From any thread, and from a handler of
 * signals. The members go on when a coordinator is there again. */
void ft_server_stop(struct ft_server *server);

/* From any thread. */
void ft_server_status(struct ft_server *server, struct ft_server_status *status);

/* Not while run() is under way. May be NULL. */
void ft_server_close(struct ft_server *server);

#endif
