/* SPDX-License-Identifier: BSD-2-Clause */
/* What keyview.c needs of the owner's table; inside prov/mem only. */
#ifndef WEFT_MEM_KEYTAB_OWN_H
#define WEFT_MEM_KEYTAB_OWN_H

#include <stddef.h>

struct mem_keytab;

/* The table's memory, as peers see it. */
const void *mem_keytab_map(const struct mem_keytab *tab, size_t *size);

#endif
