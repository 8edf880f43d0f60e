/* SPDX-License-Identifier: BSD-2-Clause */
/* See passage.h. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/gpus.h"
#include "coll/exec/passage.h"
#include "gpu/quiet.h"

/* The words of a gate, and behind them that of leaving. */
#define GATE_LEFT sizeof(struct gate_words)
_Static_assert(GATE_LEFT + sizeof(uint64_t) <= WORDS_EACH, "a stream's words have room");

/* How long a call waits for others that wait for the driver. */
#define QUIET_NS UINT64_C(5000000000)

/* How long closing waits for streams that were let go. */
#define LEAVE_NAPS   1000
#define LEAVE_NAP_NS 1000000L

static enum weft_result gate_fault(struct exec *x, int32_t device, int rc)
{
	struct gpu *gpu = x->gpus->gpu;

	if (rc == -ENOSYS)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "weft_opts.stream: GPU %d cannot hold a stream: %s",
				 device, gpu->device[device].hold_why);
	if (rc == -EDEADLK)
		return error_set(WEFT_ERR_BUSY,
				 "weft_opts.stream, on GPU %d: the driver is asked for "
				 "something that it waits until the GPU is idle for, "
				 "and still does",
				 device);
	if (rc == -EAGAIN)
		return error_set(WEFT_ERR_BUSY,
				 "weft_opts.stream, on GPU %d: %d streams and calls in "
				 "graphs are in use already",
				 device, WORDS_COUNT);
	return error_set(rc == -ENOMEM ? WEFT_ERR_NOMEM : WEFT_ERR_DEVICE,
			 "weft_opts.stream, on GPU %d: %s", device, gpu_error(gpu));
}

static void gate_free(struct gpus *gpus, struct stream_gate *g)
{
	struct list *node;

	while ((node = list_pop_front(&g->idle)))
		free(container_of(node, struct passage, link));
	if (g->memory)
		words_put(gpus, g->memory);
	free(g);
}

static bool gate_is_over(const struct stream_gate *g)
{
	return list_empty(&g->passages) &&
	       atomic_load_explicit(g->left, memory_order_acquire) >= g->issued;
}

/* Words, where they are all in use those of a stream that has left them. */
static void *gate_words(struct gpus *gpus)
{
	void *words = words_get(gpus);

	if (words)
		return words;
	list_foreach (pos, &gpus->gates) {
		struct stream_gate *g = container_of(pos, struct stream_gate, link);

		if (!gate_is_over(g))
			continue;
		list_remove(&g->link);
		gate_free(gpus, g);
		return words_get(gpus);
	}
	return NULL;
}

static enum weft_result gate_make(struct exec *x, int32_t device, void *stream,
				  struct stream_gate **out)
{
	struct gpu *gpu = x->gpus->gpu;
	struct stream_gate *g = calloc(1, sizeof(*g));
	int rc = -EAGAIN;

	if (!g)
		return error_set(WEFT_ERR_NOMEM, "no memory for a stream");
	list_init(&g->passages);
	list_init(&g->idle);
	g->device = device;
	g->stream = stream;
	g->memory = gate_words(x->gpus);
	if (g->memory)
		rc = gate_init(&g->gate, gpu, device, g->memory);
	if (rc) {
		const enum weft_result result = gate_fault(x, device, rc);

		gate_free(x->gpus, g);
		return result;
	}
	g->left = (_Atomic uint64_t *)(void *)((char *)g->memory + GATE_LEFT);
	list_push_front(&x->gpus->gates, &g->link);
	*out = g;
	return WEFT_SUCCESS;
}

static enum weft_result gate_of(struct exec *x, int32_t device, void *stream,
				struct stream_gate **out)
{
	list_foreach (pos, &x->gpus->gates) {
		struct stream_gate *g = container_of(pos, struct stream_gate, link);

		if (g->stream == stream && g->device == device) {
			*out = g;
			return WEFT_SUCCESS;
		}
	}
	return gate_make(x, device, stream, out);
}

static struct passage *passage_alloc(struct stream_gate *g)
{
	struct list *node = list_pop_front(&g->idle);
	struct passage *p =
		node ? container_of(node, struct passage, link) : calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct passage){.gate = g, .n = g->issued + 1};
	list_push_back(&g->passages, &p->link);
	return p;
}

enum weft_result exec_stream_capture(struct exec *x, int32_t device, void *stream,
				     uint64_t *id)
{
	enum gpu_capture state;
	enum weft_result result = exec_find_device(x, device);
	int rc;

	*id = 0;
	if (result != WEFT_SUCCESS)
		return result;
	rc = gpu_stream_capture(x->gpus->gpu, device, stream, &state, id);
	if (rc)
		return gate_fault(x, device, rc);
	if (state == GPU_CAPTURE_NONE)
		*id = 0;
	if (state == GPU_CAPTURE_BROKEN)
		return error_set(WEFT_ERR_ARG,
				 "weft_opts.stream is being captured, and the capture is "
				 "broken: end it first");
	return WEFT_SUCCESS;
}

/* Each launch would be another call, and this is one. */
static enum weft_result stream_is_plain(struct exec *x, int32_t device, void *stream)
{
	uint64_t id;
	const enum weft_result result = exec_stream_capture(x, device, stream, &id);

	if (result != WEFT_SUCCESS || !id)
		return result;
	return error_set(
		WEFT_ERR_UNSUPPORTED,
		"weft_opts.stream is being captured: of what becomes part of a "
		"graph there is no request: use the blocking call of the "
		"collective, which returns at once (messages cannot be captured)");
}

enum weft_result passage_open(struct exec *x, int32_t device, void *stream,
			      struct passage **out)
{
	struct gpu_word_op leave = {.kind = GPU_WORD_WRITE};
	struct stream_gate *g = NULL;
	struct passage *p;
	enum weft_result result = stream_is_plain(x, device, stream);
	int rc;

	if (result == WEFT_SUCCESS)
		result = gate_of(x, device, stream, &g);
	if (result != WEFT_SUCCESS)
		return result;
	p = passage_alloc(g);
	if (!p)
		return error_set(WEFT_ERR_NOMEM, "no memory for a place in a stream");
	rc = hold_begin(QUIET_NS) ? 0 : -EDEADLK;
	if (!rc) {
		rc = gate_pass(&g->gate, stream, p->n);
		if (rc)
			hold_end();
	}
	if (rc) {
		list_remove(&p->link);
		list_push_front(&g->idle, &p->link);
		return gate_fault(x, device, rc);
	}
	g->issued = p->n;
	leave.word = g->left;
	leave.value = p->n;
	rc = gpu_stream_words(x->gpus->gpu, device, stream, &leave, 1);
	if (rc) {
		result = gate_fault(x, device, rc);
		passage_close(p);
		return result;
	}
	*out = p;
	return WEFT_SUCCESS;
}

void passage_close(struct passage *passage)
{
	struct stream_gate *g = passage->gate;

	if (passage->replay) {
		passage->replay->taken = false;
		gate_open(&passage->replay->gate, 1);
		return;
	}
	passage->over = true;
	while (!list_empty(&g->passages)) {
		struct passage *first =
			container_of(g->passages.next, struct passage, link);

		if (!first->over)
			return;
		list_remove(&first->link);
		list_push_front(&g->idle, &first->link);
		gate_open(&g->gate, first->n);
		hold_end();
	}
}

void req_pass_on(struct exec_req *req)
{
	if (req->passage)
		passage_close(req->passage);
	req->passage = NULL;
}

static bool gate_is_left(const struct stream_gate *g)
{
	const struct timespec nap = {.tv_nsec = LEAVE_NAP_NS};

	for (int i = 0; i < LEAVE_NAPS; i++) {
		if (atomic_load_explicit(g->left, memory_order_acquire) >= g->issued)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

bool passages_close(struct gpus *gpus)
{
	struct list *node;
	bool all = true;

	while ((node = list_pop_front(&gpus->gates))) {
		struct stream_gate *g = container_of(node, struct stream_gate, link);

		if (gate_is_left(g))
			gate_free(gpus, g);
		else
			all = false;
	}
	return all;
}

/* ---- graphs --------------------------------------------------------------------------
 */

/* From a thread of the driver. */
static void replay_gone(void *arg)
{
	struct exec_replay *r = arg;

	atomic_store_explicit(&r->gone, true, memory_order_release);
}

static int replay_put(struct exec *x, int32_t device, void *stream, struct exec_replay *r)
{
	struct gpu *gpu = x->gpus->gpu;
	int rc;

	r->words = gate_words(x->gpus);
	if (!r->words)
		return -EAGAIN;
	rc = gate_init(&r->gate, gpu, device, r->words);
	if (!rc)
		rc = gate_pass(&r->gate, stream, 0);
	/* From here on the graph has it. */
	if (!rc)
		rc = gpu_stream_keep(gpu, device, stream, replay_gone, r);
	return rc;
}

enum weft_result exec_replay_open(struct exec *x, int32_t device, void *stream,
				  void (*begin)(void *arg), void *arg,
				  struct exec_replay **out)
{
	struct exec_replay *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return error_set(WEFT_ERR_NOMEM, "no memory for a call in a graph");
	r->begin = begin;
	r->arg = arg;
	r->passage.replay = r;
	list_init(&r->passage.link);
	/* A launch makes the stream wait, and nobody says when: until the graph is gone.
	 */
	rc = hold_begin(QUIET_NS) ? 0 : -EDEADLK;
	if (!rc) {
		rc = replay_put(x, device, stream, r);
		if (rc)
			hold_end();
	}
	if (rc) {
		const enum weft_result result = gate_fault(x, device, rc);

		if (r->words)
			words_put(x->gpus, r->words);
		free(r);
		return result;
	}
	list_push_back(&x->replays, &r->link);
	*out = r;
	return WEFT_SUCCESS;
}

void exec_replay_close(struct exec *x, struct exec_replay *replay)
{
	list_remove(&replay->link);
	words_put(x->gpus, replay->words);
	hold_end();
	free(replay);
}

bool exec_replay_is_gone(const struct exec_replay *replay)
{
	return atomic_load_explicit(&replay->gone, memory_order_acquire);
}

struct passage *exec_replay_passage(struct exec_replay *replay)
{
	return &replay->passage;
}

bool replays_run(struct exec *x)
{
	bool moved = false;

	list_foreach (pos, &x->replays) {
		struct exec_replay *r = container_of(pos, struct exec_replay, link);

		if (r->taken || !gate_take(&r->gate))
			continue;
		r->taken = true;
		r->begin(r->arg);
		moved = true;
	}
	return moved;
}

/* ---- for the calls -------------------------------------------------------------------
 */

enum weft_result exec_find_device(struct exec *x, int32_t device)
{
	struct gpus *gpus;
	enum weft_result result = gpus_get(x, "weft_opts.stream is given", &gpus);

	if (result != WEFT_SUCCESS)
		return result;
	if (device >= 0 && device < gpus->gpu->devices)
		return gpus_use(x, device);
	return error_set(WEFT_ERR_ARG,
			 "weft_opts.src_device is %d, of the stream: this process has %d "
			 "GPUs",
			 device, gpus->gpu->devices);
}

enum weft_result exec_passage_open(struct exec *x, int32_t device, void *stream,
				   struct passage **passage)
{
	enum weft_result result = exec_find_device(x, device);

	return result == WEFT_SUCCESS ? passage_open(x, device, stream, passage) : result;
}

void exec_passage_close(struct passage *passage)
{
	passage_close(passage);
}
