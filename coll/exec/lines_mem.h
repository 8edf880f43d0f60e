/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of lines: each rank of a context has one file in memory, which nobody finds
 * by a name and which is gone with the last process that has it. The rank's card says
 * where it is open; ranks of the same node map it from /proc, to read only, and look
 * whether it is what the card says and of a length that cannot change any more.
 */
#ifndef WEFT_EXEC_LINES_MEM_H
#define WEFT_EXEC_LINES_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include "coll/exec/lines.h"
#include "weft/weft.h"

#define LINES_NODE_MAX 64 /* ranks of a node whose memory is mapped */

/* Travels as it is. */
struct lines_card {
	uint32_t pid; /* 0: there is none */
	uint16_t fd;
	uint8_t nonce[6]; /* that the file begins with, too */
};

struct lines_file;

struct lines_mem {
	struct lines_file *own;
	int fd;			      /* open until all that may have mapped it */
	const struct lines_file **of; /* by rank; NULL: not of our node */
	int *life;		      /* by rank: a descriptor of its process, or -1 */
	int32_t size;
	uint32_t *pid;		/* by rank: of those of our node */
	enum lines_level level; /* to those of our node */
	enum lines_level good;	/* the least that any of our node says */
	bool told;		/* why there are none */
	bool demands;		/* WEFT_LINES=on: it is told */
	bool only_short;	/* WEFT_LINES=short */
};

/* WEFT_LINES: what it says; ARG. Unset is as "auto". */
enum lines_wish { LINES_AUTO, LINES_OFF, LINES_ON, LINES_ONLY_SHORT };
enum weft_result lines_read(const char *text, enum lines_wish *wish);

/* Makes our file and fills the card; card->pid is 0 where there is none. */
void lines_mem_open(struct lines_mem *mem, enum lines_wish wish, struct lines_card *card);

/* Maps those of our node, by what each rank said, and tries whether their memory can be
 * read. `level` says how far that went. */
void lines_mem_map(struct lines_mem *mem, const int32_t *lead,
		   const struct lines_card *(*card)(const void *arg, int32_t rank),
		   const void *arg, int32_t size, int32_t self);

/* All ranks have mapped what they will; of(i): the `level` of rank i. */
void lines_mem_agree(struct lines_mem *mem, const int32_t *lead, int32_t self,
		     enum lines_level (*of)(const void *arg, int32_t rank),
		     const void *arg);

void lines_mem_close(struct lines_mem *mem);

/* Whether it is known that a rank's process has ended. A system call. */
bool lines_mem_ended(const struct lines_mem *mem, int32_t rank);

/* Reads `len` bytes, more than none, of a rank of our node from an address of its own: at
 * LINES_FAR. 0, or an errno: ESRCH where the process that has this memory has ended. The
 * address is the rank's word, and can harm nobody but itself. A system call. */
int lines_mem_read(const struct lines_mem *mem, int32_t rank, void *dst, uint64_t addr,
		   size_t len);

/* The lines of communicator `number`. */
struct lines_area *lines_mem_own(const struct lines_mem *mem, uint32_t number);
const struct lines_area *lines_mem_of(const struct lines_mem *mem, int32_t rank,
				      uint32_t number);

#endif
