/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info --profiles: what the weft provider says of the devices that it uses. */
#include "config.h"

#include "cli/info_rails.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

enum { TEXT_MAX = 8192 };

/* The provider's text, which begins with a title of its own. */
static void nic_show(const char *domain, struct fid_nic *nic)
{
	char text[TEXT_MAX] = "";
	const char *lines;

	if (!nic->fid.ops || nic->fid.ops->size <= offsetof(struct fi_ops, tostr) ||
	    !nic->fid.ops->tostr)
		return;
	nic->fid.ops->tostr(&nic->fid, text, sizeof(text));
	lines = strchr(text, '\n');
	printf("%s\n%s", domain, lines ? lines + 1 : "");
}

int info_rails_show(void)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	const char *last = "";
	int shown = 0;

	if (hints)
		hints->fabric_attr->prov_name = strdup("weft");
	if (!hints || !hints->fabric_attr->prov_name ||
	    fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list))
		list = NULL;
	/* One domain has an entry for each family of addresses, one behind the other. */
	for (const struct fi_info *i = list; i; i = i->next) {
		const char *domain = i->domain_attr->name;

		if (!i->nic || !domain || strcmp(domain, last) == 0)
			continue;
		nic_show(domain, i->nic);
		last = domain;
		shown++;
	}
	if (!shown)
		printf("no RDMA device is used: the log says why (FI_LOG_LEVEL=info)\n");
	fi_freeinfo(list);
	fi_freeinfo(hints);
	return shown ? 0 : 1;
}
