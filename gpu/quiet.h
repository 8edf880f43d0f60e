/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When the driver may be asked for what makes it wait until a device is idle: to prepare
 * a device, to pin and to free memory, to open a queue. While it waits no other call of
 * this process reaches the device. So nobody may ask while a stream is held that goes on
 * only after a further call (a copy of the collective that it waits for): it would wait
 * for ever.
 *
 * Either side says what it is about to do. A *hold* begins before a stream is made to
 * wait and ends when the host's word is written that lets it go on, or when the graph
 * that the wait is part of is gone. A *quiet* time begins before such a call, and ends
 * after it. Of the two there is only one kind at a time in the process, whatever contexts
 * and devices they are of. Waits of the application's own are not known here.
 *
 * Threads: any. A hold may end in another thread than it began in, and a quiet time, too.
 */
#ifndef WEFT_GPU_QUIET_H
#define WEFT_GPU_QUIET_H

#include <stdbool.h>
#include <stdint.h>

/* Until there is no hold; false: there still is after so many ns. 0 ns: only looks. */
bool quiet_begin(uint64_t wait_ns);
void quiet_end(void);

/* Until it is not quiet; false: it still is after so many ns. */
bool hold_begin(uint64_t wait_ns);
void hold_end(void);

#endif
