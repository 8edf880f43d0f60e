/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is slow where nothing stands still. A sample is a call that all members have ended:
 * how long each was busy by itself (reducing, copying, between its calls) rather than
 * waiting for others. The roofline is what half of the ranks achieve in the same call, or
 * better; a rank that stays below 70 % of it in five samples in a row is slow. For links
 * the same with the bytes that each rank has sent to each of its peers, over the time in
 * which something was on its way there.
 */
#ifndef WEFT_ANALYZE_PACE_H
#define WEFT_ANALYZE_PACE_H

#include "coll/analyze/job.h"
#include "coll/analyze/verdict.h"

#define PACE_ROOFLINE 0.7
enum { PACE_SAMPLES = 5 };

/* False: nobody is. */
bool pace_find(const struct job *job, struct verdict *v);

#endif
