/* SPDX-License-Identifier: BSD-2-Clause */
/* What fills the slots of an operations table where there is nothing: old slots are
 * called without a look at them, so that none may be NULL. */
#ifndef WEFT_FI_NOSYS_H
#define WEFT_FI_NOSYS_H

#include <rdma/fabric.h>

int wfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int wfi_no_control(struct fid *fid, int command, void *arg);
int wfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops,
		    void *context);
int wfi_no_tostr(const struct fid *fid, char *buf, size_t len);
int wfi_no_ops_set(struct fid *fid, const char *name, uint64_t flags, void *ops,
		   void *context);

#endif
