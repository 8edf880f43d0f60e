/* SPDX-License-Identifier: BSD-2-Clause */
/* GPUs as weft info shows them. */
#ifndef WEFT_CLI_INFO_GPUS_H
#define WEFT_CLI_INFO_GPUS_H

#include "cli/json.h"
#include "gpu/gpu.h"

/* The backend of this host; NULL where there is no memory for even that. */
struct gpu *info_gpus_open(void);

/* One line for each, or why there is none. gpu may be NULL. */
void info_gpus_text(const struct gpu *gpu);
/* The members "gpus" and "gpus_missing" (null where there are some). */
void info_gpus_json(struct json *j, const struct gpu *gpu);

#endif
