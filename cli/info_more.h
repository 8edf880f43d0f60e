/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What weft info shows when it is asked for one thing: variables (--config), algorithms
 * and which is chosen when (--algorithms), how bytes are moved (--protocols). In the JSON
 * document all of it is there.
 */
#ifndef WEFT_CLI_INFO_MORE_H
#define WEFT_CLI_INFO_MORE_H

#include <stdbool.h>

#include "cli/info_vars.h"
#include "cli/json.h"

/* Variables whose values are not for others: "NAME=...". */
bool info_is_secret(const char *entry);

void info_config_text(const struct info_vars *vars);
/* The member "config". */
void info_config_json(struct json *j, const struct info_vars *vars);

/* Returns the exit status: 1 where WEFT_TUNE or WEFT_ALGO cannot be read. */
int info_algorithms_text(void);
/* The member "choices". */
void info_algorithms_json(struct json *j);

void info_protocols_text(const struct info_vars *vars);
/* The member "protocols". */
void info_protocols_json(struct json *j, const struct info_vars *vars);

/* Ways to other processes, and why one is not there: part of the whole text, and the
 * member "wires". */
void info_wires_text(void);
void info_wires_json(struct json *j);

#endif
