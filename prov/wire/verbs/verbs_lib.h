/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibverbs, loaded when it is first asked for: nothing of it is linked, so a host
 * without it has a provider without this wire, and verbs_lib_absent() says why.
 *
 * A call of infiniband/verbs.h that the header itself makes through a context's own table
 * is used as it is: ibv_post_send, ibv_post_recv, ibv_post_srq_recv, ibv_poll_cq,
 * ibv_req_notify_cq. All others are symbols of the library, or header functions that name
 * one (ibv_query_port, ibv_reg_mr, ibv_query_gid_ex), and are called through this table
 * only. tests/dev.t sees to it that the provider names none.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_LIB_H
#define WEFT_WIRE_VERBS_VERBS_LIB_H

#include <infiniband/verbs.h>

/* As in the manual pages of the ibv_ calls of the same names. */
struct verbs_lib {
	struct ibv_device **(*get_device_list)(int *count);
	void (*free_device_list)(struct ibv_device **list);
	const char *(*get_device_name)(struct ibv_device *device);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	/* Fills the first part of the attributes only: use verbs_query_port. */
	int (*query_port)(struct ibv_context *context, uint8_t port,
			  struct _compat_ibv_port_attr *attr);
	int (*query_gid)(struct ibv_context *context, uint8_t port, int index,
			 union ibv_gid *gid);
	int (*query_pkey)(struct ibv_context *context, uint8_t port, int index,
			  __be16 *pkey);
	int (*get_async_event)(struct ibv_context *context,
			       struct ibv_async_event *event);
	void (*ack_async_event)(struct ibv_async_event *event);

	struct ibv_pd *(*alloc_pd)(struct ibv_context *context);
	int (*dealloc_pd)(struct ibv_pd *pd);
	struct ibv_mr *(*reg_mr)(struct ibv_pd *pd, void *addr, size_t length,
				 int access);
	int (*dereg_mr)(struct ibv_mr *mr);

	struct ibv_comp_channel *(*create_comp_channel)(struct ibv_context *context);
	int (*destroy_comp_channel)(struct ibv_comp_channel *channel);
	struct ibv_cq *(*create_cq)(struct ibv_context *context, int cqe,
				    void *cq_context, struct ibv_comp_channel *channel,
				    int comp_vector);
	int (*destroy_cq)(struct ibv_cq *cq);
	int (*get_cq_event)(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context);
	void (*ack_cq_events)(struct ibv_cq *cq, unsigned int count);

	struct ibv_srq *(*create_srq)(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
	int (*modify_srq)(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
	int (*destroy_srq)(struct ibv_srq *srq);

	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	int (*modify_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
	int (*query_qp)(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr);
	int (*destroy_qp)(struct ibv_qp *qp);

	const char *(*wc_status_str)(enum ibv_wc_status status);
	const char *(*event_type_str)(enum ibv_event_type event);
	const char *(*port_state_str)(enum ibv_port_state state);

	/* NULL where the library that was found has no such call. */
	int (*fork_init)(void);
	enum ibv_fork_status (*is_fork_initialized)(void);
	/* Registers with relaxed ordering and other optional flags. */
	struct ibv_mr *(*reg_mr_iova2)(struct ibv_pd *pd, void *addr, size_t length,
				       uint64_t iova, unsigned int access);
	struct ibv_mr *(*reg_dmabuf_mr)(struct ibv_pd *pd, uint64_t offset, size_t length,
					uint64_t iova, int fd, int access);
	int (*query_gid_ex)(struct ibv_context *context, uint32_t port, uint32_t index,
			    struct ibv_gid_entry *entry, uint32_t flags, size_t size);
	int (*query_qp_data_in_order)(struct ibv_qp *qp, enum ibv_wr_opcode op,
				      uint32_t flags);
};

/* The table, the same for the whole life of the process; NULL: there is none. Any thread.
 */
const struct verbs_lib *verbs_lib(void);
/* Why there is none, in words; NULL: there is one. */
const char *verbs_lib_absent(void);

/* All attributes of a port. 0, or a positive errno as of ibv_query_port. */
int verbs_query_port(const struct verbs_lib *lib, struct ibv_context *context,
		     uint8_t port, struct ibv_port_attr *attr);

#endif
