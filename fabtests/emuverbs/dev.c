/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: the list of them, what they say of themselves, opening and closing. */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabtests/emuverbs/cq.h"
#include "fabtests/emuverbs/event.h"
#include "fabtests/emuverbs/host.h"
#include "fabtests/emuverbs/post.h"
#include "fabtests/emuverbs/qp.h"

#undef ibv_query_port

#define PKEY	     0xffffu
#define COMP_VECTORS 4

/* Vendors' libraries look behind what is public to see whether a device is theirs. */
struct device {
	struct ibv_device ibv;
	uint8_t behind[512];
};

static struct device devices[EMU_DEVICES_MAX];

static void guid(const struct emu_dev *dev, uint8_t out[8])
{
	static const uint8_t begin[4] = {0x02, 'e', 'm', 'u'};

	memcpy(out, begin, 4);
	memcpy(out + 4, dev->set->gid[0].raw + 12, 4);
}

static __be64 guid_be(const struct emu_dev *dev)
{
	__be64 v;

	guid(dev, (uint8_t *)&v);
	return v;
}

unsigned emu_dev_gids(const struct emu_dev *dev)
{
	if (dev->set->link == EMU_INFINIBAND)
		return 1;
	return 2 + 2 * dev->set->addresses;
}

static bool gid_is_mapped(const uint8_t raw[16])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(raw, mapped, sizeof(mapped)) == 0;
}

/* The address that was said as the one of an entry; NULL: the link's own is there. */
static const struct emu_gid *gid_said(const struct emu_dev *dev, unsigned index)
{
	const struct emu_gid *first = &dev->set->gid[0];

	/* Of InfiniBand an IPv6 one is the port's, so another subnet may be had. */
	if (dev->set->link == EMU_INFINIBAND)
		return gid_is_mapped(first->raw) ? NULL : first;
	return index < 2 ? NULL : &dev->set->gid[(index - 2) / 2];
}

/* The table: the link's own address and those that were said, on Ethernet of either
 * version. */
bool emu_dev_gid(const struct emu_dev *dev, unsigned index, union ibv_gid *gid,
		 enum ibv_gid_type *type)
{
	static const uint8_t local[2] = {0xfe, 0x80};
	bool ethernet = dev->set->link == EMU_ETHERNET;
	const struct emu_gid *said;

	memset(gid, 0, sizeof(*gid));
	if (dev->set->gids == EMU_GIDS_NONE || index >= emu_dev_gids(dev))
		return false;
	*type = !ethernet ? IBV_GID_TYPE_IB
			  : (index % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
	said = gid_said(dev, index);
	if (said &&
	    (said->use == EMU_GID_EMPTY || (said->use == EMU_GID_V1 && index % 2)))
		return false;
	if (said) {
		memcpy(gid->raw, said->raw, 16);
	} else {
		memcpy(gid->raw, local, 2);
		guid(dev, gid->raw + 8);
	}
	return true;
}

static bool gid_dead(const struct emu_dev *dev, unsigned index)
{
	const struct emu_gid *said = gid_said(dev, index);

	return said && said->use == EMU_GID_DEAD;
}

int emu_dev_route(const struct emu_dev *dev, unsigned index, const union ibv_gid *to)
{
	static const union ibv_gid none;
	enum ibv_gid_type type;
	union ibv_gid own;

	if (!emu_dev_gid(dev, index, &own, &type) || memcmp(to, &none, sizeof(none)) == 0)
		return EINVAL;
	if (gid_dead(dev, index))
		return ENETUNREACH;
	if (dev->set->link == EMU_INFINIBAND)
		return 0;
	/* As the kernel, which looks for the way between two addresses of IP. */
	return gid_is_mapped(own.raw) == gid_is_mapped(to->raw) ? 0 : EINVAL;
}

uint16_t emu_dev_lid(const struct emu_dev *dev)
{
	return dev->set->link == EMU_INFINIBAND ? (uint16_t)(dev->index + 1) : 0;
}

uint32_t emu_dev_pkey(const struct emu_dev *dev, unsigned index)
{
	/* The first is everybody's, the others are full membership of their own. */
	if (index >= dev->set->pkeys)
		return 0;
	return index == 0 ? PKEY : 0x8000u | index;
}

/* No GID begins with 0 and has nothing in the middle. */
void emu_dev_lid_address(uint16_t lid, uint8_t address[16])
{
	memset(address, 0, 16);
	address[14] = (uint8_t)(lid >> 8);
	address[15] = (uint8_t)lid;
}

struct emu_dev *emu_dev_find(const uint8_t address[16])
{
	for (unsigned i = 0; i < emu.setup.devices; i++) {
		struct emu_dev *dev = &emu.dev[i];
		uint8_t lid[16];
		union ibv_gid gid;
		enum ibv_gid_type type;

		if (emu_dev_lid(dev)) {
			emu_dev_lid_address(emu_dev_lid(dev), lid);
			if (memcmp(lid, address, 16) == 0)
				return dev;
		}
		for (unsigned g = 0; g < emu_dev_gids(dev); g++)
			if (emu_dev_gid(dev, g, &gid, &type) && !gid_dead(dev, g) &&
			    memcmp(gid.raw, address, 16) == 0)
				return dev;
	}
	return NULL;
}

enum ibv_mtu emu_dev_mtu(const struct emu_dev *dev)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while ((128u << mtu) < dev->set->mtu)
		mtu++;
	return mtu;
}

/* Once: other threads read what an earlier list gave them. */
static void devices_fill(unsigned n)
{
	static bool filled;

	emu_lock();
	for (unsigned i = 0; !filled && i < n; i++) {
		struct ibv_device *d = &devices[i].ibv;

		d->node_type =
			emu.dev[i].set->foreign ? IBV_NODE_UNSPECIFIED : IBV_NODE_CA;
		d->transport_type = emu.dev[i].set->foreign ? IBV_TRANSPORT_UNSPECIFIED
							    : IBV_TRANSPORT_IB;
		snprintf(d->name, sizeof(d->name), "%s", emu.dev[i].set->name);
		/* The kernel has a folder for each device, with a link to its hardware.
		 * This one has none; of others nothing can be seen. */
		if (emu.dev[i].set->software)
			snprintf(d->ibdev_path, sizeof(d->ibdev_path), "/sys/class");
		snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%u", i);
	}
	filled = filled || n > 0;
	emu_unlock();
}

EMU_API struct ibv_device **ibv_get_device_list(int *num_devices)
{
	unsigned n = emu_host_load() ? emu.setup.devices : 0;
	struct ibv_device **list = calloc(n + 1, sizeof(*list));

	if (!list)
		return NULL;
	devices_fill(n);
	for (unsigned i = 0; i < n; i++)
		list[i] = &devices[i].ibv;
	if (num_devices)
		*num_devices = (int)n;
	return list;
}

EMU_API void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

struct emu_dev *emu_dev_of(struct ibv_device *device)
{
	return &emu.dev[container_of(device, struct device, ibv) - devices];
}

EMU_API const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

EMU_API int ibv_get_device_index(struct ibv_device *device)
{
	return (int)emu_dev_of(device)->index;
}

EMU_API __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return guid_be(emu_dev_of(device));
}

static void attr_fill(const struct emu_dev *dev, struct ibv_device_attr *a)
{
	const struct emu_device *s = dev->set;

	*a = (struct ibv_device_attr){
		.fw_ver = "1.0",
		.node_guid = guid_be(dev),
		.sys_image_guid = guid_be(dev),
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.vendor_id = 0x65,
		.vendor_part_id = 1,
		.max_qp = (int)s->max_qp,
		.max_qp_wr = (int)s->max_qp_wr,
		.device_cap_flags = IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_CURR_QP_STATE_MOD,
		.max_sge = (int)s->max_sge,
		.max_sge_rd = (int)s->max_sge,
		.max_cq = (int)s->max_cq,
		.max_cqe = (int)s->max_cqe,
		.max_mr = (int)s->max_mr,
		.max_pd = 65536,
		.max_qp_rd_atom = (int)s->max_rd_atomic,
		.max_res_rd_atom = (int)(s->max_rd_atomic * s->max_qp),
		.max_qp_init_rd_atom = (int)s->max_rd_atomic,
		.atomic_cap = s->atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE,
		.max_srq = (int)s->max_srq,
		.max_srq_wr = (int)s->max_srq_wr,
		.max_srq_sge = (int)s->max_sge,
		.max_pkeys = (uint16_t)s->pkeys,
		.phys_port_cnt = (uint8_t)s->ports,
	};
}

EMU_API int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	attr_fill(emu_context_of(context)->dev, attr);
	return 0;
}

/* As much of the struct as the caller knows. */
static int query_device_ex(struct ibv_context *context,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t size)
{
	const struct emu_dev *dev = emu_context_of(context)->dev;

	(void)input;
	if (size < sizeof(attr->orig_attr))
		return EINVAL;
	memset(attr, 0, size);
	attr_fill(dev, &attr->orig_attr);
	if (size < offsetof(struct ibv_device_attr_ex, odp_caps) +
			    sizeof(attr->odp_caps) ||
	    dev->set->demand == EMU_DEMAND_NONE)
		return 0;
	attr->odp_caps.general_caps =
		IBV_ODP_SUPPORT |
		(dev->set->demand == EMU_DEMAND_IMPLICIT ? IBV_ODP_SUPPORT_IMPLICIT : 0u);
	attr->odp_caps.per_transport_caps.rc_odp_caps =
		IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
		IBV_ODP_SUPPORT_READ;
	return 0;
}

static bool port_there(struct ibv_context *context, uint32_t port)
{
	return port >= 1 && port <= emu_context_of(context)->dev->set->ports;
}

/* Of the one with a cable is all that is said of paths. */
static bool port_cabled(struct ibv_context *context, uint32_t port)
{
	return port == emu_context_of(context)->dev->set->port;
}

static void port_fill(const struct emu_dev *dev, uint8_t port, struct ibv_port_attr *a)
{
	bool cabled = port == dev->set->port;
	bool down = dev->down || dev->fatal || !cabled;

	*a = (struct ibv_port_attr){
		.state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = emu_dev_mtu(dev),
		.gid_tbl_len = (int)emu_dev_gids(dev),
		.max_msg_sz = EMU_MESSAGE_MAX,
		.pkey_tbl_len = (uint16_t)dev->set->pkeys,
		.lid = cabled ? emu_dev_lid(dev) : 0,
		.sm_lid = cabled && emu_dev_lid(dev) ? 1 : 0,
		.max_vl_num = 1,
		.active_width = 2,  /* 4 lanes */
		.active_speed = 32, /* of 25 Gbit/s */
		.phys_state = down ? 3 : 5,
		.link_layer = dev->set->link == EMU_ETHERNET ? IBV_LINK_LAYER_ETHERNET
							     : IBV_LINK_LAYER_INFINIBAND,
	};
}

static int query_port(struct ibv_context *context, uint8_t port,
		      struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr whole;

	if (!port_there(context, port))
		return EINVAL;
	emu_lock();
	port_fill(emu_context_of(context)->dev, port, &whole);
	emu_unlock();
	memset(attr, 0, size);
	memcpy(attr, &whole, size < sizeof(whole) ? size : sizeof(whole));
	return 0;
}

/* Of programs from before the struct grew: all up to the link layer and its padding. */
EMU_API int ibv_query_port(struct ibv_context *context, uint8_t port,
			   struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr,
			  offsetof(struct ibv_port_attr, port_cap_flags2));
}

EMU_API int ibv_query_gid(struct ibv_context *context, uint8_t port, int index,
			  union ibv_gid *gid)
{
	enum ibv_gid_type type;

	/* An entry that is empty is no error. */
	if (!port_there(context, port) || index < 0 ||
	    (unsigned)index >= emu_dev_gids(emu_context_of(context)->dev)) {
		errno = EINVAL;
		return -1;
	}
	memset(gid, 0, sizeof(*gid));
	if (port_cabled(context, port))
		emu_dev_gid(emu_context_of(context)->dev, (unsigned)index, gid, &type);
	return 0;
}

static bool gid_entry(struct emu_dev *dev, uint32_t index, struct ibv_gid_entry *e)
{
	enum ibv_gid_type type;
	union ibv_gid gid;

	if (!emu_dev_gid(dev, index, &gid, &type))
		return false;
	*e = (struct ibv_gid_entry){.gid = gid,
				    .gid_index = index,
				    .port_num = (uint32_t)dev->set->port,
				    .gid_type = type};
	return true;
}

EMU_API int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
			      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	struct ibv_gid_entry e;

	if (flags || !port_there(context, port) || size < sizeof(e))
		return EINVAL;
	if (!port_cabled(context, port))
		return ENODATA;
	if (!gid_entry(emu_context_of(context)->dev, index, &e))
		return ENODATA;
	memcpy(entry, &e, sizeof(e));
	return 0;
}

EMU_API ssize_t _ibv_query_gid_table(struct ibv_context *context,
				     struct ibv_gid_entry *entries, size_t max,
				     uint32_t flags, size_t size)
{
	struct emu_dev *dev = emu_context_of(context)->dev;
	struct ibv_gid_entry e;
	size_t n = 0;

	if (flags || size < sizeof(e))
		return -EINVAL;
	for (unsigned i = 0; n < max && i < emu_dev_gids(dev); i++)
		if (gid_entry(dev, i, &e))
			memcpy((char *)entries + n++ * size, &e, sizeof(e));
	return (ssize_t)n;
}

EMU_API int ibv_query_gid_type(struct ibv_context *context, uint8_t port,
			       unsigned int index, enum ibv_gid_type *type)
{
	union ibv_gid gid;

	if (!port_cabled(context, port) ||
	    !emu_dev_gid(emu_context_of(context)->dev, index, &gid, type)) {
		errno = EINVAL;
		return -1;
	}
	return 0;
}

EMU_API int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index,
			   __be16 *pkey)
{
	uint32_t found =
		index < 0 ? 0
			  : emu_dev_pkey(emu_context_of(context)->dev, (unsigned)index);

	if (!port_there(context, port) || !found)
		return -1;
	*pkey = htobe16((uint16_t)found);
	return 0;
}

EMU_API int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	struct emu_dev *dev = emu_context_of(context)->dev;

	for (unsigned i = 0; port_there(context, port) && i < dev->set->pkeys; i++)
		if (htobe16((uint16_t)emu_dev_pkey(dev, i)) == pkey)
			return (int)i;
	return -1;
}

static int dev_ready(struct emu_dev *dev)
{
	int rc = emu_host_start();

	if (rc == 0 && dev->fatal)
		rc = EIO;
	if (rc == 0 && !dev->qp) {
		dev->qp = calloc(EMU_INDEXES, sizeof(*dev->qp));
		rc = dev->qp ? 0 : ENOMEM;
	}
	return rc;
}

static void ops_fill(struct emu_context *c)
{
	struct ibv_context_ops *ops = &c->ibv.context.ops;

	ops->poll_cq = emu_cq_poll;
	ops->req_notify_cq = emu_cq_arm;
	ops->post_send = emu_post_send;
	ops->post_recv = emu_post_recv;
	ops->post_srq_recv = emu_post_srq_recv;
	c->ibv.sz = sizeof(c->ibv);
	c->ibv.query_port = query_port;
	c->ibv.query_device_ex = query_device_ex;
	c->ibv.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

EMU_API struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct emu_context *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return NULL;
	if (!emu_queue_open(&c->async)) {
		free(c);
		return NULL;
	}
	c->dev = emu_dev_of(device);
	ops_fill(c);
	c->ibv.context.device = device;
	c->ibv.context.cmd_fd = -1;
	c->ibv.context.async_fd = c->async.fd;
	c->ibv.context.num_comp_vectors = COMP_VECTORS;
	pthread_mutex_init(&c->ibv.context.mutex, NULL);
	emu_lock();
	rc = dev_ready(c->dev);
	if (rc == 0)
		list_push_back(&c->dev->contexts, &c->node);
	emu_unlock();
	if (rc == 0)
		return &c->ibv.context;
	emu_queue_close(&c->async);
	free(c);
	errno = rc;
	return NULL;
}

EMU_API int ibv_close_device(struct ibv_context *context)
{
	struct emu_context *c = emu_context_of(context);

	emu_lock();
	/* The real library does not notice; what was left behind would be used. */
	if (c->objects > 0)
		fprintf(stderr,
			"emuverbs: %s is closed with %u objects that were not "
			"destroyed\n",
			c->dev->set->name, c->objects);
	list_remove(&c->node);
	emu_queue_close(&c->async);
	emu_unlock();
	if (c->objects == 0)
		free(c);
	return 0;
}
