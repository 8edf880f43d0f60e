/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the emulated devices of two processes say to each other: packets over a socket
 * that keeps their boundaries and their order. A request names the queue pair that it is
 * from and for; answers go back where the request came from. Both ends are on one host,
 * so numbers are as the host has them.
 */
#ifndef WEFT_FABTESTS_EMUVERBS_PACKET_H
#define WEFT_FABTESTS_EMUVERBS_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_PACKET_MAGIC 0x656d7531u
/* Bytes of one packet's payload at most. */
#define EMU_CHUNK 65536u

enum emu_kind {
	EMU_WRITE,
	EMU_SEND,
	EMU_READ,
	EMU_SWAP, /* compare and swap */
	EMU_ADD,
	EMU_ACK,  /* of everything up to `number`; with EMU_ONLY: of that one */
	EMU_NAK,  /* `code` says why */
	EMU_DATA, /* of a read */
	EMU_OLD,  /* what an atomic found, in `swap` */
	EMU_KINDS
};

enum emu_flag {
	EMU_IMMEDIATE = 1,
	EMU_SOLICITED = 2,
	EMU_ONLY = 4,
	EMU_UNORDERED = 8, /* one of a device that places out of order */
	EMU_REFUSE = 16,   /* a fault: to be refused as if its key were wrong */
};

enum emu_nak {
	EMU_NAK_GONE, /* no such queue pair, or it is not ready: retries are exceeded */
	EMU_NAK_RNR,  /* there was no receive */
	EMU_NAK_ACCESS,
	EMU_NAK_REQUEST, /* invalid request */
	EMU_NAK_LOCAL,	 /* the responder's own fault */
	EMU_NAKS
};

struct emu_packet {
	uint32_t magic;
	uint8_t kind;
	uint8_t flags;
	uint8_t mtu;  /* enum ibv_mtu of the requester's path */
	uint8_t code; /* enum emu_nak; of RNR: `bytes` is the timer's code */
	uint32_t to;  /* queue pairs */
	uint32_t from;
	uint32_t cookie; /* of the requester's incarnation, echoed */
	uint32_t attempt;
	uint32_t number; /* of the message */
	uint32_t oldest; /* that the requester has no answer for */
	uint32_t psn;	 /* that the requester began with */
	uint32_t immediate;
	uint32_t key;
	uint32_t bytes; /* of payload in this packet */
	uint32_t pkey;
	uint32_t unused;
	uint64_t remote; /* address */
	uint64_t offset; /* of this packet in the message */
	uint64_t length; /* of the message */
	uint64_t compare;
	uint64_t swap;
	uint8_t to_address[16];
	uint8_t from_address[16];
};

/* Whether `len` bytes are one: a stranger may have sent them. */
static inline bool emu_packet_valid(const struct emu_packet *p, size_t len)
{
	return len >= sizeof(*p) && p->magic == EMU_PACKET_MAGIC && p->kind < EMU_KINDS &&
	       p->code < EMU_NAKS && len - sizeof(*p) <= EMU_CHUNK &&
	       (p->kind == EMU_WRITE || p->kind == EMU_SEND || p->kind == EMU_DATA
			? p->bytes == len - sizeof(*p) && p->offset <= p->length &&
				  p->bytes <= p->length - p->offset
			: len == sizeof(*p));
}

static inline bool emu_kind_request(uint8_t kind)
{
	return kind <= EMU_ADD;
}

#endif
