/* SPDX-License-Identifier: BSD-2-Clause */
/* weft doctor: what its parts share. */
#ifndef WEFT_CLI_DOCTOR_H
#define WEFT_CLI_DOCTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/findings.h"

struct doctor_opts {
	const char *root; /* a copy of /proc and /sys in a folder; "": this host */
	int64_t budget_us;
	bool json;
};

/* Limits, kernel, devices of this host, or of the one whose files are below root. */
void doctor_host(struct findings *f, const char *root);
/* Of it the devices: RDMA, network, GPUs, the bridges above them. */
void doctor_devices(struct findings *f, const char *root);

/* Of these the RDMA ones: their ports, and whether programs reach them. */
void doctor_rdma(struct findings *f, const char *root);
/* Whether the host has an RDMA device. */
bool doctor_has_rdma(const char *root);

/* Providers that libfabric finds, and variables that nobody accepts. */
void doctor_libfabric(struct findings *f);

/*
 * What ranks can only find out together: collective over all ranks of the job. host is
 * what this rank has found by itself. 0, and at rank 0 *sets has `*count` sets, of each
 * rank and of all together, which the caller frees; elsewhere *count is 0. -1: ranks did
 * not meet or a call failed, of which host has a finding then: leave the process soon.
 */
int doctor_job(const struct doctor_opts *opts, struct findings *host,
	       struct findings **sets, int *count);

#endif
