/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sides of a case on two hosts: the program is started on both, with the same
 * arguments, and runs one side of each case in each place.
 *
 *   WEFT_TEST_SIDE=0|1      the side that runs here
 *   WEFT_TEST_MEET=IP:PORT  where side 1 listens for side 0 (IPv4)
 *   WEFT_TEST_SOURCE=IP     the address of the endpoints here
 */
#ifndef WEFT_FABTESTS_OWN_APART_H
#define WEFT_FABTESTS_OWN_APART_H

#include <stdbool.h>

/* Reads the variables; ends the program when one of them is wrong or missing. */
void apart_init(void);
bool apart_is(void);
/* Of the case that begins: who runs it here. */
int apart_side(void);
/* A connection to the other side; ends the program when there is none within a minute. */
int apart_meet(void);
/* For endpoints; 127.0.0.1 where both sides are on one host. */
const char *apart_source(void);

#endif
