/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields that later versions of libfabric have behind the structures of 1.17. Whether
 * they are there is a question of what the application asked for (its interface version),
 * not of the headers that this is built with: those only say how they are reached.
 */
#ifndef WEFT_FI_NEWER_H
#define WEFT_FI_NEWER_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#ifdef HAVE_STRUCT_FI_CQ_ERR_ENTRY_SRC_ADDR
#define NEWER_ERR_SRC(e) ((e)->src_addr)
#else
struct newer_cq_err_entry {
	struct fi_cq_err_entry old;
	fi_addr_t src_addr;
};
#define NEWER_ERR_SRC(e) (((struct newer_cq_err_entry *)(e))->src_addr)
#endif

#ifdef HAVE_STRUCT_FI_DOMAIN_ATTR_MAX_GROUP_ID
#define NEWER_DOMAIN_ATTR(d) (d)
#else
struct newer_domain_attr {
	struct fi_domain_attr old;
	size_t max_ep_auth_key;
	uint32_t max_group_id;
};
#define NEWER_DOMAIN_ATTR(d) ((const struct newer_domain_attr *)(d))
#endif

#ifdef FI_MR_DMABUF
#define newer_mr_dmabuf fi_mr_dmabuf
#else
#define FI_MR_DMABUF (UINT64_C(1) << 40)
struct newer_mr_dmabuf {
	int fd;
	uint64_t offset;
	size_t len;
	void *base_addr;
};
#endif

/* From interface 1.20 on, of a registration with FI_MR_DMABUF: in place of its pieces. */
static inline const struct newer_mr_dmabuf *newer_dmabuf(const struct fi_mr_attr *attr)
{
	return (const void *)attr->mr_iov;
}

/* From interface 1.20 on. */
static inline void newer_err_src_set(struct fi_cq_err_entry *e, fi_addr_t src)
{
	NEWER_ERR_SRC(e) = src;
}

static inline fi_addr_t newer_err_src(const struct fi_cq_err_entry *e)
{
	return NEWER_ERR_SRC((struct fi_cq_err_entry *)(uintptr_t)e);
}

/* From interface 2.0 on. */
static inline size_t newer_max_ep_auth_key(const struct fi_domain_attr *d)
{
	return NEWER_DOMAIN_ATTR(d)->max_ep_auth_key;
}

static inline uint32_t newer_max_group_id(const struct fi_domain_attr *d)
{
	return NEWER_DOMAIN_ATTR(d)->max_group_id;
}

#endif
