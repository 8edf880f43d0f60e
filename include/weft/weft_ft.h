/* SPDX-License-Identifier: BSD-2-Clause */
/* A part of <weft/weft.h>: an all-reduce that survives the death of members. The rules at
 * the top of that header hold here. */
#ifndef WEFT_WEFT_FT_H
#define WEFT_WEFT_FT_H

#include <weft/weft.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Members are processes that a coordinator knows (`weft coordinator`), with no context or
 * job in common: they die, are stopped or leave, and others come, while the rest goes on.
 * Their all-reduces are steps, numbered from 1. A step counts for all members that go on
 * or for none: it is run from an input that stays as it is, voted upon, and run again
 * among those that live, when one of them was lost before everybody had voted.
 */
struct weft_ft;

struct weft_ft_opts {
	size_t size;		 /* sizeof(struct weft_ft_opts) */
	const char *coordinator; /* "host:port", or several, separated by commas, of which
				  * one at a time serves */
	const char *job;     /* the coordinator's secret, 64 bytes at most; NULL: "" */
	const char *address; /* name or address of this host by which other members reach
			      * it; NULL: that by which it reaches the coordinator */
	uint32_t group;	     /* members of one group come and go together */
	uint64_t sign;	     /* a number that all members must have alike, for what they
			      * reduce: who comes with another one is refused */
	const char *provider, *domain; /* as in weft_ctx_opts */
	int64_t timeout_us;	       /* default deadline of every call */
	int64_t attempt_us; /* in which a step must be run once; then it is run again, and
			     * who kept it waiting twice is excluded; 0: 10 s. Up to eight
			     * times as long where epoch after epoch fails */
	size_t chunk; /* bytes that are reduced at a time, a multiple of 4096, the same
		       * for all members; 0: 1 MiB */
};
#define WEFT_FT_OPTS_INIT                           \
	{                                           \
		.size = sizeof(struct weft_ft_opts) \
	}

/*
 * Joins, and waits until it takes part. A newcomer is let in between two steps of the
 * others: weft_ft_info.step is the last that they did, and its first call is the next.
 * Until it has the state that belongs to that step it calls with src NULL: it contributes
 * nothing, gets the results that its state lacks, and nobody waits for it. Errors: ARG,
 * PROVIDER, BOOTSTRAP, FENCED (refused: the detail says why), TIMEOUT (the coordinator is
 * not there, or too few members), NOMEM.
 */
WEFT_API enum weft_result weft_ft_open(const struct weft_ft_opts *opts,
				       struct weft_ft **ft);

/*
 * The next step. src: count elements, or NULL: nothing is contributed, with sum, avg, bor
 * and bxor. dst: count elements. All members give the same count, type and op. An average
 * divides by the members that contributed to the step that counted. All members get the
 * same bits. In place when src equals dst; otherwise they do not overlap, and dst is
 * undefined unless the result is SUCCESS (in place it is the input as long as the step
 * does not count).
 *
 * TIMEOUT: the step is undecided when the deadline passes. It is still open: the buffers
 * are in use, and the same call again goes on with it (any other gives BUSY).
 * FENCED: this member takes no part any more: the others have declared it dead, or went
 * on without it; a process that wants in again opens another handle. Errors also: ARG,
 * UNSUPPORTED, MISMATCH (members disagree about the call: the handle is good for nothing
 * more, and some may go on without the one that differs), NOMEM, BUSY. One call at a time
 * on one handle.
 */
WEFT_API enum weft_result weft_ft_allreduce(struct weft_ft *ft, const void *src,
					    void *dst, uint64_t count,
					    enum weft_type type, enum weft_op op,
					    int64_t timeout_us);

struct weft_ft_info {
	size_t size;	       /* sizeof(struct weft_ft_info), set by the caller */
	uint64_t id;	       /* of this member, in what coordinator and others say */
	uint64_t step;	       /* the last that counts */
	uint32_t members;      /* that it was run by */
	uint32_t contributors; /* and had an input */
	uint64_t runs;	       /* of steps, by this member; more than steps: again */
	uint64_t epochs;       /* whose members this one has met */
	uint32_t buried; /* networks of old epochs that peers may still write into */
};
WEFT_API enum weft_result weft_ft_info(struct weft_ft *ft, struct weft_ft_info *info);

/* Leaves, between two steps, and waits until the others know: they do not wait for a
 * member that has left. Its group is out with it; where of every group somebody leaves,
 * all are. A step that failed for good (MISMATCH, say) is given up; the buffers are the
 * caller's again when this is SUCCESS. Of a member that is out already there is nothing
 * left to do: SUCCESS. TIMEOUT (no coordinator, or too few of the others live), BUSY (a
 * step is open). */
WEFT_API enum weft_result weft_ft_leave(struct weft_ft *ft, int64_t timeout_us);

/* Closes the handle. To the others a member that has not left is dead soon after. Memory
 * of the library that a stopped peer may still write stays allocated. */
WEFT_API enum weft_result weft_ft_close(struct weft_ft *ft);

/* A coordinator in this process, as `weft coordinator` is one in its own. */
struct weft_ft_server;

struct weft_ft_serve_opts {
	size_t size;	    /* sizeof(struct weft_ft_serve_opts) */
	const char *listen; /* "host:port", where members connect; port 0: any free one */
	const char *state;  /* the file in which it keeps what must survive it, or
			     * "etcd://host:port/prefix", "etcds://..." with TLS */
	const char *job;    /* the secret, 64 bytes at most; NULL: "" */
	uint32_t members;   /* that the first epoch waits for, 1 to 4,096 */
	uint32_t group_size; /* members come and go in groups of so many; 0: 1 */
	int first; /* the job never had a coordinator: the file must not be there.
		    * Else one that is not there is lost, and the state comes
		    * from the members */
	int64_t silence_us; /* who says nothing for so long is dead; 0: 3 s */
};
#define WEFT_FT_SERVE_OPTS_INIT                           \
	{                                                 \
		.size = sizeof(struct weft_ft_serve_opts) \
	}

/*
 * Starts a thread that serves; members, this process among them, come by weft_ft_open().
 * It dies with the process: the members then wait, until a coordinator is there again at
 * one of the places that they know, with the same state or by what they say themselves.
 * Signals go to other threads. Errors: ARG, BUSY (another coordinator leads, by the etcd
 * that both use), BOOTSTRAP (the place or the state can't be had), NOMEM.
 */
WEFT_API enum weft_result weft_ft_serve(const struct weft_ft_serve_opts *opts,
					struct weft_ft_server **server);

/* "127.0.0.1:4711": where it listens; as long as the server is there. */
WEFT_API const char *weft_ft_serve_address(const struct weft_ft_server *server);

/* Ends it, and frees what it had but for the state; waits for its thread. Members that
 * have not left go on when a coordinator is there again. FENCED: another one has taken
 * over; BOOTSTRAP: it could not go on; the detail says why. Once, by one thread. */
WEFT_API enum weft_result weft_ft_serve_end(struct weft_ft_server *server);

#ifdef __cplusplus
}
#endif

#endif
