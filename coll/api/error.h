/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one place where a failure becomes a sentence. Whoever finds an error calls
 * error_set(), once, and returns what it returned; layers above pass the result on.
 */
#ifndef WEFT_API_ERROR_H
#define WEFT_API_ERROR_H

#include "weft/weft.h"

/* Stores the sentence for weft_error_detail() of this thread; returns result. */
__attribute__((format(printf, 2, 3))) enum weft_result error_set(enum weft_result result,
								 const char *fmt, ...);

/* Forgets the sentence; called at the start of each public function. */
void error_clear(void);

#endif
