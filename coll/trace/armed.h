/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorders that dump by themselves into a folder: at the first failure of a call, at
 * SIGUSR2, and where the process dies of a fault. What the program has done about these
 * signals before goes on: of SIGUSR2 it keeps the signal, of a fault its handler is
 * called after the dump.
 */
#ifndef WEFT_TRACE_ARMED_H
#define WEFT_TRACE_ARMED_H

#include "coll/trace/recorder.h"

/* ARG with the detail: the folder's name is too long, or it is none that can be written.
 */
enum weft_result armed_add(struct recorder *r, const char *folder);

/* A recorder that closes, armed or not. What handled the signals before does again after
 * the last one. */
void armed_remove(struct recorder *r);

#endif
