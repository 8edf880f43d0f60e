/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info: the ways that the weft provider has to other processes, and why one is not
 * there.
 */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "cli/doctor.h"
#include "cli/info_more.h"

enum { WHY_TEXT = 512, DOMAIN_TEXT = 128 };

struct wire {
	const char *name;
	const char *reaches;
	char domain[DOMAIN_TEXT]; /* "": it is not there */
	char why[WHY_TEXT];	  /* and why not */
};

enum { WIRE_SHM, WIRE_VERBS, WIRE_UET, WIRES };

/* Whether libfabric lists a domain of the wire for the provider. */
static void wire_find(struct wire *w)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	const size_t len = strlen(w->name);

	if (hints)
		hints->fabric_attr->prov_name = strdup("weft");
	if (!hints || !hints->fabric_attr->prov_name ||
	    fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &list))
		list = NULL;
	for (const struct fi_info *i = list; i && !w->domain[0]; i = i->next) {
		const char *domain = i->domain_attr->name;

		if (domain && strncmp(domain, w->name, len) == 0 &&
		    (domain[len] == ':' || !domain[len]))
			snprintf(w->domain, sizeof(w->domain), "%s", domain);
	}
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* A variable that leaves it out: true, and why. */
static bool left_out(struct wire *w)
{
	const char *wire = getenv("FI_WEFT_WIRE"), *shm = getenv("FI_WEFT_SHM");

	if (wire && strcmp(wire, "auto") != 0 && strcmp(wire, w->name) != 0)
		snprintf(w->why, sizeof(w->why),
			 "FI_WEFT_WIRE=%.32s leaves it out: unset it", wire);
	else if (shm && strcmp(shm, "0") == 0 && strcmp(w->name, "shm") == 0)
		snprintf(w->why, sizeof(w->why), "FI_WEFT_SHM=0 turns it off: unset it");
	return w->why[0] != '\0';
}

/* What is in the way of RDMA, from the bottom up. */
static void verbs_why(struct wire *w)
{
#ifdef HAVE_VERBS
	static struct findings found;
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		snprintf(w->why, sizeof(w->why),
			 "libibverbs.so.1 is not installed (Debian: libibverbs1 "
			 "ibverbs-providers)");
		return;
	}
	dlclose(lib);
	if (!doctor_has_rdma("")) {
		snprintf(w->why, sizeof(w->why),
			 "no RDMA device: /sys/class/infiniband is empty (the kernel "
			 "module "
			 "of the device's driver makes it; rdma link add NAME type rxe "
			 "netdev INTERFACE makes one in software)");
		return;
	}
	found.count = 0;
	doctor_rdma(&found, "");
	for (int i = 0; i < found.count; i++)
		if (found.list[i].level != LEVEL_PASS) {
			snprintf(w->why, sizeof(w->why), "%.200s: %.280s",
				 found.list[i].figure, found.list[i].cure);
			return;
		}
	snprintf(w->why, sizeof(w->why),
		 "there are devices with an active port, and the provider uses none: "
		 "FI_LOG_LEVEL=info FI_LOG_PROV=weft fi_info -p weft says why");
#else
	snprintf(w->why, sizeof(w->why),
		 "built without it: configure found no infiniband/verbs.h (Debian: "
		 "libibverbs-dev)");
#endif
}

static void wires_read(struct wire wire[WIRES])
{
	static const struct wire names[WIRES] = {
		{.name = "shm", .reaches = "this host by shared memory"},
		{.name = "verbs", .reaches = "other hosts over RDMA devices"},
		{.name = "uet", .reaches = "other hosts over UDP"},
	};

	memcpy(wire, names, sizeof(names));
	for (int i = 0; i < WIRES; i++) {
		wire_find(&wire[i]);
		if (wire[i].domain[0] || left_out(&wire[i]))
			continue;
		if (i == WIRE_VERBS)
			verbs_why(&wire[i]);
		else if (i == WIRE_UET)
			snprintf(wire[i].why, sizeof(wire[i].why),
				 "it is there where it is asked for: FI_WEFT_WIRE=uet");
		else
			snprintf(
				wire[i].why, sizeof(wire[i].why),
				"FI_LOG_LEVEL=info FI_LOG_PROV=weft fi_info -p weft says "
				"why");
	}
}

void info_wires_text(void)
{
	struct wire wire[WIRES];

	wires_read(wire);
	printf("\nwires of the provider weft\n");
	for (int i = 0; i < WIRES; i++)
		printf("  %-16s %-20s %s%s%s\n", wire[i].name,
		       wire[i].domain[0] ? wire[i].domain : "not there", wire[i].reaches,
		       wire[i].why[0] ? ": " : "", wire[i].why);
}

void info_wires_json(struct json *j)
{
	struct wire wire[WIRES];

	wires_read(wire);
	json_array_begin(j, "wires");
	for (int i = 0; i < WIRES; i++) {
		json_object_begin(j, NULL);
		json_text(j, "name", wire[i].name);
		json_text(j, "reaches", wire[i].reaches);
		json_text(j, "domain", wire[i].domain[0] ? wire[i].domain : NULL);
		json_text(j, "why_not", wire[i].why[0] ? wire[i].why : NULL);
		json_object_end(j);
	}
	json_array_end(j);
}
