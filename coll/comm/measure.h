/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measures the terms of the model that algorithms are chosen by (coll/tune/cost.h).
 */
#ifndef WEFT_COMM_MEASURE_H
#define WEFT_COMM_MEASURE_H

#include "coll/comm/comm.h"

/*
 * Collective over a communicator of all ranks that has no call under way: the first two
 * ranks exchange some messages, rank 0 adds up some memory, and all get what rank 0 has
 * seen: less than 10 ms on a machine that does nothing else, some MiB moved. With one
 * rank there is nothing to measure, and the terms say so (alpha_ps 0), as they do
 * everywhere where the messages failed; the next call of the communicator hears of that.
 * An error is that of the bootstrap.
 */
enum weft_result measure_terms(struct weft_comm *comm, struct cost_terms *terms);

#endif
