/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target: one validator of bytes that strangers send. It is linked twice: with
 * engine.c for clang's engine (--enable-fuzzing, make fuzz), and with random.c as a test
 * that every compiler can build, which changes valid messages at random.
 */
#ifndef WEFT_TESTS_FUZZ_FUZZ_H
#define WEFT_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Longest message that random.c makes. */
#define FUZZ_ROOM 512

/* Hands the bytes to the validator and aborts when what it accepted is wrong. Returns
 * whether it was accepted. The bytes are exactly size long: reading beyond is seen. */
bool fuzz_one(const uint8_t *data, size_t size);

/* Writes the valid message of that number; returns its length, 0: there is no such. */
size_t fuzz_seed(unsigned number, uint8_t room[FUZZ_ROOM]);

static inline void fuzz_require(bool good)
{
	if (!good)
		abort();
}

#endif
