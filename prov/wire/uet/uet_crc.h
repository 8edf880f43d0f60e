/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C (Castagnoli), by the processor where it can. Between the ends of a datagram
 * that isn't sealed: UDP's own sum misses what memory and switches do to whole words. */
#ifndef WEFT_WIRE_UET_UET_CRC_H
#define WEFT_WIRE_UET_UET_CRC_H

#include <stddef.h>
#include <stdint.h>

#define UET_CRC_BYTES 4

/* crc: 0, or what it gave for the bytes before these. */
uint32_t uet_crc(uint32_t crc, const void *data, size_t len);
/* The same, and the bytes are copied to where nothing of them is yet: one look at them
 * does for both. */
uint32_t uet_crc_copy(uint32_t crc, void *to, const void *from, size_t len);
/* As uet_crc, without the processor's help. */
uint32_t uet_crc_plain(uint32_t crc, const void *data, size_t len);

#endif
