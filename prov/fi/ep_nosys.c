/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that an endpoint does not have. libfabric calls the old slots without a
 * look, so each is there and says -FI_ENOSYS. */
#include "config.h"

#include "prov/fi/ep_int.h"

/* ---- fi_collective(3) */

static ssize_t coll_barrier(struct fid_ep *ep, fi_addr_t coll_addr, void *context)
{
	(void)ep;
	(void)coll_addr;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_broadcast(struct fid_ep *ep, void *buf, size_t count, void *desc,
			      fi_addr_t coll_addr, fi_addr_t root_addr,
			      enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)coll_addr;
	(void)root_addr;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_alltoall(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			     void *result, void *result_desc, fi_addr_t coll_addr,
			     enum fi_datatype datatype, uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_allreduce(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, void *result, void *result_desc,
			      fi_addr_t coll_addr, enum fi_datatype datatype,
			      enum fi_op op, uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)datatype;
	(void)op;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_allgather(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, void *result, void *result_desc,
			      fi_addr_t coll_addr, enum fi_datatype datatype,
			      uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_reduce_scatter(struct fid_ep *ep, const void *buf, size_t count,
				   void *desc, void *result, void *result_desc,
				   fi_addr_t coll_addr, enum fi_datatype datatype,
				   enum fi_op op, uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)datatype;
	(void)op;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_reduce(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			   void *result, void *result_desc, fi_addr_t coll_addr,
			   fi_addr_t root_addr, enum fi_datatype datatype, enum fi_op op,
			   uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)root_addr;
	(void)datatype;
	(void)op;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_scatter(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			    void *result, void *result_desc, fi_addr_t coll_addr,
			    fi_addr_t root_addr, enum fi_datatype datatype,
			    uint64_t flags, void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)root_addr;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_gather(struct fid_ep *ep, const void *buf, size_t count, void *desc,
			   void *result, void *result_desc, fi_addr_t coll_addr,
			   fi_addr_t root_addr, enum fi_datatype datatype, uint64_t flags,
			   void *context)
{
	(void)ep;
	(void)buf;
	(void)count;
	(void)desc;
	(void)result;
	(void)result_desc;
	(void)coll_addr;
	(void)root_addr;
	(void)datatype;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

static ssize_t coll_msg(struct fid_ep *ep, const struct fi_msg_collective *msg,
			struct fi_ioc *resultv, void **result_desc, size_t result_count,
			uint64_t flags)
{
	(void)ep;
	(void)msg;
	(void)resultv;
	(void)result_desc;
	(void)result_count;
	(void)flags;
	return -FI_ENOSYS;
}

static ssize_t coll_barrier2(struct fid_ep *ep, fi_addr_t coll_addr, uint64_t flags,
			     void *context)
{
	(void)ep;
	(void)coll_addr;
	(void)flags;
	(void)context;
	return -FI_ENOSYS;
}

struct fi_ops_collective wfi_ep_ops_collective = {
	.size = sizeof(struct fi_ops_collective),
	.barrier = coll_barrier,
	.broadcast = coll_broadcast,
	.alltoall = coll_alltoall,
	.allreduce = coll_allreduce,
	.allgather = coll_allgather,
	.reduce_scatter = coll_reduce_scatter,
	.reduce = coll_reduce,
	.scatter = coll_scatter,
	.gather = coll_gather,
	.msg = coll_msg,
	.barrier2 = coll_barrier2,
};
