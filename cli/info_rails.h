/* SPDX-License-Identifier: BSD-2-Clause */
/* weft info --profiles. */
#ifndef WEFT_CLI_INFO_RAILS_H
#define WEFT_CLI_INFO_RAILS_H

/* Rails, and how links over them spread, of each domain of the weft provider that has
 * devices. Returns the exit status: 1 when there is none. */
int info_rails_show(void);

#endif
