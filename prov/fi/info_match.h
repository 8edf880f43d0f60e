/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints against what there is. Pure: no system call, nothing kept. */
#ifndef WEFT_FI_INFO_MATCH_H
#define WEFT_FI_INFO_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <rdma/fabric.h>

/* Everything that can be granted; `remote` adds FI_REMOTE_COMM. */
uint64_t wfi_caps_all(bool remote);
/* Of these, what domain_attr->caps says as well. */
uint64_t wfi_caps_domain(bool remote);

struct wfi_entry;

/* Whether an entry meets the hints. 0, or -FI_ENODATA after saying at info level which
 * hint asked for what. */
int wfi_info_match(uint32_t version, const struct fi_info *hints,
		   const struct wfi_entry *entry);

/* What a matching request is granted: primary capabilities as asked, their modifiers
 * where none was given, and the secondary ones that cost nothing. */
uint64_t wfi_caps_grant(uint64_t asked, bool remote);

/* mr_mode as returned. Nothing is required, so this is the application's choice. */
int wfi_mr_mode_grant(uint32_t version, const struct fi_info *hints);

/* The hints allow addresses of this family. */
bool wfi_info_family(const struct fi_info *hints, sa_family_t family);

#endif
