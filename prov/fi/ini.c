/* SPDX-License-Identifier: BSD-2-Clause */
/* The one symbol that libfabric looks for. */
#include "config.h"

#include <stdio.h>

#include "prov/fi/fabric.h"
#include "prov/fi/info.h"
#include "prov/mem/params.h"

FI_EXT_INI
{
	unsigned int major = 0, minor = 0;

	sscanf(PACKAGE_VERSION, "%u.%u", &major, &minor);
	weft_provider.version = FI_VERSION(major, minor);
	weft_provider.getinfo = wfi_getinfo;
	weft_provider.fabric = wfi_fabric_open;
	prov_params_init();
	return &weft_provider;
}
