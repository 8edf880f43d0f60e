/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes over a door's connection: frames of 16 bytes, some with a body. The first
 * eight bytes and what a refusal says are the same in every version.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_FRAME_H
#define WEFT_WIRE_VERBS_VERBS_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "prov/wire/verbs/verbs_auth.h"
#include "prov/wire/verbs/verbs_card.h"

#define VERBS_DOOR_VERSION 1
#define VERBS_FRAME_HEAD   16u
#define VERBS_FRAME_BODY   (VERBS_CARD_MAX + VERBS_PROOF)
#define VERBS_WORD_MAX	   64u

enum verbs_frame_kind {
	VERBS_FRAME_OPEN = 1,  /* dialler with a key: nonce */
	VERBS_FRAME_CHALLENGE, /* nonce, proof */
	VERBS_FRAME_HELLO,     /* card [, proof] */
	VERBS_FRAME_ANSWER,    /* card [, proof] */
	VERBS_FRAME_READY,     /* [proof] */
	VERBS_FRAME_END,       /* why; no body */
	VERBS_FRAME_WORD,      /* of a call that is up: word [, proof] */
	VERBS_FRAME_KINDS
};

/* Why a connection ends. */
enum verbs_end {
	VERBS_END_CLOSED = 1,  /* goodbye */
	VERBS_END_LATER = 2,   /* not now, try again */
	VERBS_END_KEY = 3,     /* the keys differ, or only one has one */
	VERBS_END_CANT = 4,    /* cards that don't fit, or that are none */
	VERBS_END_VERSION = 5, /* another version of the door */
	VERBS_ENDS
};

struct verbs_frame {
	enum verbs_frame_kind kind;
	uint16_t context; /* of the endpoint that is meant: OPEN, HELLO; else 0 */
	uint16_t len;	  /* of the body */
	enum verbs_end end;
};

enum verbs_frame_error {
	VERBS_FRAME_OK,
	VERBS_FRAME_ALIEN,  /* no frame at all */
	VERBS_FRAME_VERSION /* of another version */
};

/* Never fails: the caller's frame is right. */
void verbs_frame_write(const struct verbs_frame *frame, uint8_t head[VERBS_FRAME_HEAD]);
/* A stranger's. The length is one that this kind may have with or without a key. An END
 * of any version is OK. */
enum verbs_frame_error verbs_frame_read(const uint8_t head[VERBS_FRAME_HEAD],
					struct verbs_frame *frame);

#endif
