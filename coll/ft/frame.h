/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages cut out of a stream of bytes, one at a time. Nothing but a header is read, and
 * no memory beyond it is taken, before the header's secret and lengths were checked.
 */
#ifndef WEFT_FT_FRAME_H
#define WEFT_FT_FRAME_H

#include "coll/ft/ft_wire.h"

enum ft_cut {
	FT_CUT_MORE,  /* the message is not whole yet */
	FT_CUT_WHOLE, /* *msg is valid until the next call */
	FT_CUT_BAD, /* this is no message of the job: the stream is of no use any more */
	FT_CUT_MEMORY, /* the same, for want of memory */
};

struct ft_frame {
	uint8_t hdr[FT_HDR_LEN];
	uint8_t *buf; /* of a message that is longer than its header; owned */
	size_t room;  /* of buf */
	size_t len;   /* bytes of the message that are here */
	size_t whole; /* its length; 0: not known yet */
	struct ft_inbox inbox;
};

/* Zeros are an empty one. */
void ft_frame_fini(struct ft_frame *frame);

/* Where the next bytes belong, and how many there may be: never 0. */
uint8_t *ft_frame_space(struct ft_frame *frame, size_t *len);

/* So many bytes were put there. */
enum ft_cut ft_frame_add(struct ft_frame *frame, size_t len, const uint8_t *job,
			 struct ft_msg *msg);

#endif
