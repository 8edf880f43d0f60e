/* SPDX-License-Identifier: BSD-2-Clause */
/* The one symbol that libfabric looks for. */
#include "config.h"

#include <stddef.h>

#include <rdma/providers/fi_prov.h>

FI_EXT_INI
{
	return NULL;
}
