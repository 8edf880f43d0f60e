/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices in an fi_info. libfabric copies them with fi_dupinfo, attribute by attribute,
 * and the copy is closed by this provider as well: so all is malloc's, and nothing is
 * private. */
#include "config.h"

#include "prov/fi/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/mem/params.h"

/* fi_tostr has room for 8 KiB in all. */
#define TEXT_MAX 4096

static struct fid_nic *nic_of(const struct fid *fid)
{
	return (struct fid_nic *)((char *)fid - offsetof(struct fid_nic, fid));
}

static int nic_close(struct fid *fid)
{
	struct fid_nic *nic = nic_of(fid);

	if (nic->device_attr) {
		free(nic->device_attr->name);
		free(nic->device_attr->driver);
	}
	free(nic->device_attr);
	free(nic->bus_attr);
	free(nic->link_attr);
	free(nic);
	return 0;
}

static const struct wire_ops *wire_named(const char *name)
{
	for (size_t i = 0; i < wire_count; i++)
		if (wire_table[i]->describe && strcmp(wire_table[i]->name, name) == 0)
			return wire_table[i];
	return NULL;
}

/* Behind what is there, as far as there is room. */
static void append(char *buf, size_t len, const char *before, const char *text, size_t n)
{
	size_t at = strnlen(buf, len);

	if (at < len)
		snprintf(buf + at, len - at, "%s%.*s\n", before, (int)n, text);
}

static int nic_tostr(const struct fid *fid, char *buf, size_t len)
{
	const struct fid_nic *nic = nic_of(fid);
	const struct wire_ops *wire = wire_named(nic->device_attr->driver);
	char text[TEXT_MAX], *line = text;

	append(buf, len, "", "nic:", 4);
	append(buf, len, "    devices: ", nic->device_attr->name,
	       strlen(nic->device_attr->name));
	text[0] = '\0';
	if (wire)
		wire->describe(text, sizeof(text));
	while (*line) {
		size_t n = strcspn(line, "\n");

		append(buf, len, "    ", line, n);
		line += n + (line[n] == '\n');
	}
	return 0;
}

static int no_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	(void)fid;
	(void)other;
	(void)flags;
	return -FI_ENOSYS;
}

static int nic_control(struct fid *fid, int command, void *arg);

static int no_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		   void *context)
{
	(void)fid;
	(void)name;
	(void)flags;
	(void)ops;
	(void)context;
	return -FI_ENOSYS;
}

static struct fi_ops nic_ops = {.size = sizeof(struct fi_ops),
				.close = nic_close,
				.bind = no_bind,
				.control = nic_control,
				.ops_open = no_open,
				.tostr = nic_tostr};

static int nic_fill(struct fid_nic *nic, const char *names, const char *wire)
{
	nic->device_attr = calloc(1, sizeof(*nic->device_attr));
	nic->bus_attr = calloc(1, sizeof(*nic->bus_attr));
	nic->link_attr = calloc(1, sizeof(*nic->link_attr));
	if (!nic->device_attr || !nic->bus_attr || !nic->link_attr)
		return -FI_ENOMEM;
	nic->device_attr->name = strdup(names);
	nic->device_attr->driver = strdup(wire);
	nic->bus_attr->bus_type = FI_BUS_UNKNOWN;
	nic->link_attr->state = FI_LINK_UP;
	return nic->device_attr->name && nic->device_attr->driver ? 0 : -FI_ENOMEM;
}

static int nic_new(const char *names, const char *wire, struct fid_nic **out)
{
	struct fid_nic *nic = calloc(1, sizeof(*nic));
	int ret;

	if (!nic)
		return -FI_ENOMEM;
	nic->fid.fclass = FI_CLASS_NIC;
	nic->fid.ops = &nic_ops;
	ret = nic_fill(nic, names, wire);
	if (ret)
		nic_close(&nic->fid);
	else
		*out = nic;
	return ret;
}

static int nic_control(struct fid *fid, int command, void *arg)
{
	const struct fi_device_attr *d = nic_of(fid)->device_attr;

	return command == FI_DUP ? nic_new(d->name, d->driver, arg) : -FI_ENOSYS;
}

int wfi_nic_make(const struct wfi_entry *entry, struct fid_nic **out)
{
	const struct wire_ops *wire = entry->far ? entry->far : entry->wire;
	const char *names = strchr(entry->name, ':');

	*out = NULL;
	return wire->describe && names ? nic_new(names + 1, wire->name, out) : 0;
}
