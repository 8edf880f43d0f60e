/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recorders of other processes of this host and this user: their memory is read as it is,
 * so that what they do, and whether they are stopped, makes no difference.
 */
#ifndef WEFT_TRACE_TAKE_H
#define WEFT_TRACE_TAKE_H

#include <stdint.h>
#include <sys/types.h>

#include "coll/trace/recorder.h"
#include "weft/weft.h"

enum { TAKE_PATH_MAX = 512 };

/* What is done with a recorder's memory, which may be half written: anything but SUCCESS
 * has it read again, a few times. number: among those of the process. */
typedef enum weft_result take_use(void *arg, const struct trace_image *image, int number);

/* For each context that the process has open. ARG with the detail: as take_process(). */
enum weft_result take_images(pid_t pid, take_use *use, void *arg);

/* Writes a dump, folder/rank-RANK.PID.N.trace, for each context that the process has
 * open, and calls `found` with its path. ARG with the detail: there is no such process,
 * it may not be looked at, it has no recorder that another process can read, or what was
 * read is no recorder's. */
enum weft_result take_process(pid_t pid, const char *folder,
			      void (*found)(void *arg, const char *path), void *arg);

/* How the system sees it: the letter of /proc/PID/stat ('T' is stopped, 't' by a
 * debugger, 'Z' dead), or 0: it is not there. */
char take_state(pid_t pid);

/* Calls `each` for all processes whose ancestor this one is. ARG: it is not there. */
enum weft_result take_children(pid_t pid, void (*each)(void *arg, pid_t child),
			       void *arg);

/* Calls `each` for all processes of this user. */
void take_everybody(void (*each)(void *arg, pid_t pid), void *arg);

#endif
