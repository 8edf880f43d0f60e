/* SPDX-License-Identifier: BSD-2-Clause */
/* See tables.h. */
#include "config.h"

#include <errno.h>
#include <stdio.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/mirror.h"
#include "coll/exec/passage.h"
#include "coll/exec/tables.h"

/* ---- memory --------------------------------------------------------------------------
 */

enum weft_result exec_tables_open(struct exec *x, struct exec_tables *t, int32_t device,
				  size_t len, bool may_pin, void **memory)
{
	struct gpus_queues queues;
	enum weft_result result = pinned_get(x, len, may_pin, &t->pinned);

	if (result != WEFT_SUCCESS) {
		t->pinned = NULL;
		return result;
	}
	gpus_queues(x, device, &queues);
	t->x = x;
	t->device = device;
	t->in = queues.in;
	t->out = queues.out;
	*memory = t->pinned->memory;
	return WEFT_SUCCESS;
}

void exec_tables_close(struct exec *x, struct exec_tables *t)
{
	if (t->pinned)
		pinned_put(x, t->pinned);
	t->pinned = NULL;
}

/* ---- copies --------------------------------------------------------------------------
 */

/* Said now; the request fails in its next round. */
static void tables_fault(struct exec_tables *t, const char *what)
{
	if (!t->fault[0])
		snprintf(t->fault, sizeof(t->fault), "%s GPU %d failed: %s", what,
			 t->device, gpu_error(t->x->gpus->gpu));
}

static void tables_copy(struct exec_tables *t, struct gpu_queue *queue, void *to,
			const void *from, size_t len, const char *what)
{
	if (!len || t->fault[0])
		return;
	if (gpu_copy(queue, to, from, len)) {
		tables_fault(t, what);
		return;
	}
	t->queue = queue;
	t->open = true;
	t->x->stats.staged_bytes += len;
}

void exec_tables_bring(struct exec_tables *t, void *to, const void *from, size_t len)
{
	tables_copy(t, t->in, to, from, len, "copying counts from");
}

void exec_tables_take(struct exec_tables *t, void *to, const void *from, size_t len)
{
	tables_copy(t, t->out, to, from, len, "copying counts to");
}

/* A mark behind what was copied so far. Of a device that takes none nothing is waited
 * for. */
static void tables_mark(struct exec_tables *t)
{
	if (!t->open)
		return;
	t->open = false;
	if (gpu_queue_mark(t->queue)) {
		tables_fault(t, "copying counts by");
		return;
	}
	t->asked = t->queue->issued;
}

static bool tables_landed(const struct exec_tables *t)
{
	return !t->asked || gpu_queue_done(t->queue, t->asked);
}

static void tables_fail_device(struct exec_req *req)
{
	req_fail(req, WEFT_ERR_DEVICE, -1, "%s: %s", exec_req_what(req),
		 req->call.tables->fault);
}

/* ---- a request -----------------------------------------------------------------------
 */

void tables_start(struct exec_tables *t)
{
	t->state = TABLES_COMING;
	t->stage = 0;
	t->asked = 0;
	t->open = false;
	t->flies = false;
	t->fault[0] = '\0';
}

bool tables_are_there(struct exec_req *req)
{
	struct exec_tables *t = req->call.tables;

	while (t->state == TABLES_COMING && !t->fault[0]) {
		if (!tables_landed(t))
			return false;
		t->asked = 0;
		switch (t->come(t, t->stage++)) {
		case TABLES_MORE:
			tables_mark(t);
			break;
		case TABLES_ALL:
			t->state = TABLES_THERE;
			break;
		case TABLES_NO_MEMORY:
			req_fail(req, WEFT_ERR_NOMEM, -1,
				 "%s: no memory for what its counts say",
				 exec_req_what(req));
			return false;
		}
	}
	if (t->fault[0]) {
		tables_fail_device(req);
		return false;
	}
	return t->state == TABLES_THERE;
}

void tables_leave(struct exec_req *req)
{
	struct exec_tables *t = req->call.tables;

	if (t->state != TABLES_THERE)
		return;
	t->state = TABLES_LEAVING;
	t->leave(t);
	tables_mark(t);
}

bool tables_are_back(const struct exec_req *req)
{
	return tables_landed(req->call.tables) && !req->call.tables->fault[0];
}

/* Copies of a failed request have ended, or never will. */
static void tables_drop(struct exec_req *req)
{
	req->call.tables->flies = false;
	req->ops--;
	req_let_stream(req);
	req_drained(req);
}

bool tables_run(struct exec_req *req)
{
	struct exec_tables *t = req->call.tables;

	if (t->flies) {
		if (!tables_landed(t))
			return false;
		tables_drop(req);
		return true;
	}
	if (req->state != EXEC_RUNNING || t->state != TABLES_LEAVING)
		return false;
	if (t->fault[0]) {
		tables_fail_device(req);
		return true;
	}
	/* Where there is a mirror it ends the request. */
	if (req->mirror || !tables_landed(t))
		return false;
	req_settle(req);
	return true;
}

void tables_fail(struct exec_req *req)
{
	struct exec_tables *t = req->call.tables;

	tables_mark(t);
	if (tables_landed(t))
		return;
	t->flies = true;
	req->ops++;
}

void tables_check(struct exec_req *req)
{
	struct exec_tables *t = req->call.tables;
	const int rc = tables_landed(t) ? 0 : gpu_queue_sync(t->queue, 0);

	if (!rc || rc == -ETIMEDOUT)
		return;
	if (t->flies)
		tables_drop(req);
	else
		tables_fault(t, "copying counts by");
}

void req_let_stream(struct exec_req *req)
{
	if (!(req->mirror && req->mirror->flies) &&
	    !(req->call.tables && req->call.tables->flies))
		req_pass_on(req);
}
