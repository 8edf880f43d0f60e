/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "prov/fi/tests/end.h"

#include <string.h>

#include "util/tap.h"

static void must(int rc, const char *what)
{
	if (rc)
		tap_bail("%s: %s", what, fi_strerror(-rc));
}

void end_open(struct end *e, enum fi_threading threading)
{
	struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 1 << 14};
	struct fi_av_attr av = {.type = FI_AV_TABLE};
	struct fi_info *hints = fi_allocinfo();

	hints->caps = FI_MSG | FI_TAGGED;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->threading = threading;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->fabric_attr->prov_name = strdup("weft");
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &e->info), "fi_getinfo");
	fi_freeinfo(hints);
	must(fi_fabric(e->info->fabric_attr, &e->fabric, NULL), "fi_fabric");
	must(fi_domain(e->fabric, e->info, &e->domain, NULL), "fi_domain");
	must(fi_av_open(e->domain, &av, &e->av, NULL), "fi_av_open");
	must(fi_cq_open(e->domain, &cq, &e->cq, NULL), "fi_cq_open");
	must(fi_endpoint(e->domain, e->info, &e->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(e->ep, &e->av->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(e->ep), "fi_enable");
}

void end_close(struct end *e)
{
	must(fi_close(&e->ep->fid), "close ep");
	must(fi_close(&e->cq->fid), "close cq");
	must(fi_close(&e->av->fid), "close av");
	must(fi_close(&e->domain->fid), "close domain");
	must(fi_close(&e->fabric->fid), "close fabric");
	fi_freeinfo(e->info);
}

fi_addr_t end_join(struct end *e, struct end *to)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr;

	must(fi_getname(&to->ep->fid, name, &len), "fi_getname");
	if (fi_av_insert(e->av, name, 1, &addr, 0, NULL) != 1)
		tap_bail("fi_av_insert");
	return addr;
}
