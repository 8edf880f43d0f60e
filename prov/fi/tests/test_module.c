/* SPDX-License-Identifier: BSD-2-Clause */
/* The module as libfabric sees it: what it exports, that it answers, that it stays. */
#include "config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "util/tap.h"
#include "util/tap_fork.h"

static void test_symbols(void)
{
	const char *top = getenv("WEFT_TOP_BUILDDIR");
	char path[4096];
	void *dso;

	snprintf(path, sizeof(path), "%s/prov/libweft-fi.so", top ? top : ".");
	dso = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!dso)
		tap_bail("%s", dlerror());
	tap_ok(dlsym(dso, "fi_prov_ini"), "fi_prov_ini is there");
	tap_ok(!dlsym(dso, "wfi_getinfo") && !dlsym(dso, "weft_provider"),
	       "nothing else is");
	dlclose(dso);
	tap_ok(dlopen(path, RTLD_NOW | RTLD_NOLOAD),
	       "its code stays when it is unloaded");
}

static struct fi_info *info_of_weft(enum fi_progress progress)
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	int rc;

	hints->fabric_attr->prov_name = strdup("weft");
	hints->domain_attr->data_progress = progress;
	rc = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", NULL, FI_SOURCE, hints, &info);
	tap_is_int(rc, 0, "libfabric finds it");
	fi_freeinfo(hints);
	return info;
}

struct objects {
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static bool objects_open(struct objects *o, struct fi_info *info)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_DATA};

	return !fi_fabric(info->fabric_attr, &o->fabric, NULL) &&
	       !fi_domain(o->fabric, info, &o->domain, NULL) &&
	       !fi_av_open(o->domain, &av_attr, &o->av, NULL) &&
	       !fi_cq_open(o->domain, &cq_attr, &o->cq, NULL) &&
	       !fi_endpoint(o->domain, info, &o->ep, NULL) &&
	       !fi_ep_bind(o->ep, &o->av->fid, 0) &&
	       !fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV) &&
	       !fi_enable(o->ep);
}

static void objects_close(struct objects *o)
{
	tap_ok(!fi_close(&o->ep->fid) && !fi_close(&o->cq->fid) &&
		       !fi_close(&o->av->fid) && !fi_close(&o->domain->fid) &&
		       !fi_close(&o->fabric->fid),
	       "everything closes");
}

/* Many programs end without closing anything; the provider has threads then. */
static void test_exit(void)
{
	struct fi_info *info = info_of_weft(FI_PROGRESS_AUTO);
	/* Static: to a leak checker it is in use. */
	static struct objects left_open;
	int bad = 0, status;

	for (int i = 0; i < 10; i++) {
		pid_t pid = tap_fork();

		if (pid < 0)
			tap_bail("fork");
		if (pid == 0)
			exit(objects_open(&left_open, info) ? 0 : 1);
		if (waitpid(pid, &status, 0) != pid || status)
			bad++;
	}
	tap_is_int(bad, 0, "ten programs that end with everything open");
	fi_freeinfo(info);
}

/* The door keeps the host that was asked for, without a port. */
static void test_host(void)
{
	struct fi_info *info = info_of_weft(FI_PROGRESS_MANUAL);
	struct sockaddr_in got = {0};
	size_t len = sizeof(got);
	struct objects o;

	if (!objects_open(&o, info))
		tap_bail("no endpoint");
	tap_is_int(fi_getname(&o.ep->fid, &got, &len), 0, "fi_getname");
	tap_ok(got.sin_addr.s_addr == htonl(INADDR_LOOPBACK), "127.0.0.1 as asked");
	tap_ok(got.sin_port != 0, "with a port of its own");
	objects_close(&o);
	fi_freeinfo(info);
}

int main(void)
{
	setenv("FI_PROVIDER", "weft", 1);
	test_symbols();
	test_exit();
	test_host();
	return tap_done();
}
