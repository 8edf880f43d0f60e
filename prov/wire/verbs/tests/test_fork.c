/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is done about a fork, by what the library that was found says of this kernel: the
 * library is made up here. What a fork does to a link is test_verbs's.
 */
#include "config.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/verbs/verbs_fork.h"
#include "util/tap.h"

static enum ibv_fork_status status;
static enum ibv_fork_status after; /* ibv_fork_init */
static int answer;
static int calls;

static int fork_init(void)
{
	calls++;
	if (answer == 0)
		status = after;
	return answer;
}

static enum ibv_fork_status is_fork_initialized(void)
{
	return status;
}

static const struct verbs_lib lib = {.fork_init = fork_init,
				     .is_fork_initialized = is_fork_initialized};

static const struct verbs_lib old = {.fork_init = fork_init};
static const struct verbs_lib oldest;

struct row {
	const char *what;
	const struct verbs_lib *lib;
	enum ibv_fork_status status;
	enum ibv_fork_status after;
	enum prov_fork want;
	int answer;
	int calls;
	int rc;
	enum verbs_fork state;
};

#define NEEDLESS IBV_FORK_UNNEEDED
#define OFF	 IBV_FORK_DISABLED
#define ON	 IBV_FORK_ENABLED

static const struct row rows[] = {
	{"a kernel that copies", &lib, NEEDLESS, 0, PROV_FORK_AUTO, 0, 0, 0,
	 VERBS_FORK_COPIED},
	{"one that copies, on", &lib, NEEDLESS, 0, PROV_FORK_ON, 0, 0, 0,
	 VERBS_FORK_COPIED},
	{"the environment saw to it", &lib, ON, 0, PROV_FORK_AUTO, 0, 0, 0,
	 VERBS_FORK_KEPT},
	{"it was seen to, off", &lib, ON, 0, PROV_FORK_OFF, 0, 0, 0, VERBS_FORK_KEPT},
	{"seen to", &lib, OFF, ON, PROV_FORK_AUTO, 0, 1, 0, VERBS_FORK_KEPT},
	{"seen to, on", &lib, OFF, ON, PROV_FORK_ON, 0, 1, 0, VERBS_FORK_KEPT},
	{"found to be needless", &lib, OFF, NEEDLESS, PROV_FORK_AUTO, 0, 1, 0,
	 VERBS_FORK_COPIED},
	{"off", &lib, OFF, ON, PROV_FORK_OFF, 0, 0, 0, VERBS_FORK_HARMS},
	{"too late", &lib, OFF, ON, PROV_FORK_AUTO, EINVAL, 1, 0, VERBS_FORK_HARMS},
	{"too late, on", &lib, OFF, ON, PROV_FORK_ON, EINVAL, 1, -FI_EINVAL,
	 VERBS_FORK_HARMS},
	{"refused, on", &lib, OFF, ON, PROV_FORK_ON, ENOSYS, 1, -FI_EINVAL,
	 VERBS_FORK_HARMS},
	{"an old library", &old, OFF, ON, PROV_FORK_ON, 0, 1, 0, VERBS_FORK_KEPT},
	{"one without", &oldest, OFF, ON, PROV_FORK_AUTO, 0, 0, 0, VERBS_FORK_HARMS},
	{"one without, on", &oldest, OFF, ON, PROV_FORK_ON, 0, 0, -FI_EINVAL,
	 VERBS_FORK_HARMS},
};

static void row_try(const struct row *r)
{
	struct verbs_error error = {""};
	enum verbs_fork state;
	int rc;

	status = r->status;
	after = r->after;
	answer = r->answer;
	calls = 0;
	rc = verbs_fork_ready(r->lib, r->want, &state, &error);
	tap_ok(rc == r->rc && state == r->state && calls == r->calls, "%s", r->what);
	if (rc)
		tap_ok(strstr(error.text, "FI_WEFT_VERBS_FORK=on") &&
			       (r->answer != EINVAL ||
				strstr(error.text, "RDMAV_FORK_SAFE=1")),
		       "%s: in words", r->what);
}

int main(void)
{
	struct verbs_error error = {""};
	enum verbs_fork state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		row_try(&rows[i]);
	/* Devices are opened more than once. */
	status = OFF;
	after = ON;
	answer = 0;
	calls = 0;
	for (int i = 0; i < 3; i++)
		verbs_fork_ready(&lib, PROV_FORK_AUTO, &state, &error);
	tap_is_int(calls, 1, "it is asked for once");
	return tap_done();
}
