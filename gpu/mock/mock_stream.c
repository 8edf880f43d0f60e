/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams, each with a thread from its first work on, events, and captures. */
#include <stdlib.h>
#include <string.h>

#include "gpu/mock/mock_api.h"

/* How unsafe calls are taken: per thread, as the driver has it. */
static _Thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

CUresult mock_thread_exchange_capture_mode(int *mode)
{
	const int before = capture_mode;

	if (*mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
	    *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	capture_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

bool mock_unsafe(void)
{
	bool unsafe = false;

	if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	for (struct mock_capture *c = mock.captures; c; c = c->next) {
		const bool mine = pthread_equal(c->thread, pthread_self());

		if (c->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
		    (!mine && (capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
			       c->mode != CU_STREAM_CAPTURE_MODE_GLOBAL)))
			continue;
		c->broken = true;
		unsafe = true;
	}
	return unsafe;
}

struct CUstream_st *mock_stream(CUstream stream, int device)
{
	return stream ? stream : &mock.null_stream[device];
}

/* The stream that a call means: what every one of them begins with. */
static CUresult stream_of(CUstream stream, struct CUstream_st **s)
{
	int device = 0;
	const CUresult rc = stream ? mock_ready() : mock_current(&device);

	*s = mock_stream(stream, device);
	if (rc == CUDA_SUCCESS && stream)
		mock_turn(stream->device);
	return rc;
}

static void stream_end(struct CUstream_st *s)
{
	struct CUstream_st **at;

	for (at = &mock.streams; *at && *at != s; at = &(*at)->next)
		;
	if (*at)
		*at = s->next;
	pthread_mutex_unlock(&mock.lock);
	free(s);
}

static void *stream_run(void *arg)
{
	struct CUstream_st *s = arg;

	pthread_mutex_lock(&mock.lock);
	for (;;) {
		struct mock_work *w = s->first;
		CUresult rc;

		if (!w && s->closed)
			break;
		if (!w) {
			pthread_cond_wait(&mock.changed, &mock.lock);
			continue;
		}
		s->first = w->next;
		if (!s->first)
			s->last = &s->first;
		s->busy = true;
		pthread_mutex_unlock(&mock.lock);
		mock_pause(MOCK_STALL_MS);
		rc = mock_ready();
		if (rc == CUDA_SUCCESS)
			rc = mock_work_do(w);
		if (rc != CUDA_SUCCESS)
			mock_stick(rc);
		mock_work_free(w);
		pthread_mutex_lock(&mock.lock);
		s->busy = false;
		pthread_cond_broadcast(&mock.changed);
	}
	stream_end(s);
	return NULL;
}

/* Under the lock. */
static CUresult stream_start(struct CUstream_st *s)
{
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	if (s->started)
		return CUDA_SUCCESS;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	ret = pthread_create(&thread, &attr, stream_run, s);
	pthread_attr_destroy(&attr);
	s->started = ret == 0;
	return ret == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult mock_put(CUstream stream, struct mock_work *work)
{
	struct CUstream_st *s;
	CUresult rc;

	rc = stream_of(stream, &s);
	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS && s->capture && s->capture->broken) {
		rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	} else if (rc == CUDA_SUCCESS && s->capture) {
		*s->capture->graph->last = work;
		s->capture->graph->last = &work->next;
	} else if (rc == CUDA_SUCCESS) {
		rc = stream_start(s);
		if (rc == CUDA_SUCCESS) {
			*s->last = work;
			s->last = &work->next;
			pthread_cond_broadcast(&mock.changed);
		}
	}
	pthread_mutex_unlock(&mock.lock);
	if (rc != CUDA_SUCCESS)
		mock_work_free(work);
	return rc;
}

CUresult mock_stream_create(CUstream *stream, unsigned flags)
{
	struct CUstream_st *s;
	int device;
	CUresult rc;

	(void)flags;
	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_idle(device, "cuStreamCreate");
	s = calloc(1, sizeof(*s));
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	s->device = device;
	s->last = &s->first;
	pthread_mutex_lock(&mock.lock);
	s->next = mock.streams;
	mock.streams = s;
	pthread_mutex_unlock(&mock.lock);
	*stream = s;
	return CUDA_SUCCESS;
}

/* What is on it is still done. */
CUresult mock_stream_destroy(CUstream stream)
{
	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&mock.lock);
	if (!stream->started) {
		stream_end(stream); /* gives the lock back */
		return CUDA_SUCCESS;
	}
	stream->closed = true;
	pthread_cond_broadcast(&mock.changed);
	pthread_mutex_unlock(&mock.lock);
	return CUDA_SUCCESS;
}

/* Nothing may be asked of a stream that is captured. Under the lock. */
static CUresult may_ask(struct CUstream_st *s)
{
	if (s->capture) {
		s->capture->broken = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return mock_unsafe() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult mock_stream_query(CUstream stream)
{
	struct CUstream_st *s;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	rc = may_ask(s);
	if (rc == CUDA_SUCCESS && (s->first || s->busy))
		rc = CUDA_ERROR_NOT_READY;
	if (mock_knob(MOCK_ERROR))
		rc = (CUresult)mock_knob(MOCK_ERROR);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_stream_synchronize(CUstream stream)
{
	struct CUstream_st *s;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	rc = may_ask(s);
	while (rc == CUDA_SUCCESS && (s->first || s->busy))
		pthread_cond_wait(&mock.changed, &mock.lock);
	if (rc == CUDA_SUCCESS)
		rc = (CUresult)mock_knob(MOCK_ERROR);
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_stream_settle(CUstream stream)
{
	struct CUstream_st *s;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	while (!s->capture && (s->first || s->busy))
		pthread_cond_wait(&mock.changed, &mock.lock);
	pthread_mutex_unlock(&mock.lock);
	return CUDA_SUCCESS;
}

CUresult mock_event_create(CUevent *event, unsigned flags)
{
	struct CUevent_st *e;
	int device;
	CUresult rc;

	(void)flags;
	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	e = calloc(1, sizeof(*e));
	if (!e)
		return CUDA_ERROR_OUT_OF_MEMORY;
	e->refs = 1;
	*event = e;
	return CUDA_SUCCESS;
}

void mock_event_put(struct CUevent_st *event)
{
	bool last;

	pthread_mutex_lock(&mock.lock);
	last = --event->refs == 0;
	pthread_mutex_unlock(&mock.lock);
	if (!last)
		return;
	if (event->capture)
		mock_capture_put(event->capture);
	free(event);
}

CUresult mock_event_destroy(CUevent event)
{
	mock_event_put(event);
	return CUDA_SUCCESS;
}

/* Work that has an event: a reference of its own. */
static CUresult put_event(CUstream stream, enum mock_work_kind kind, CUevent event,
			  uint64_t value)
{
	struct mock_work *w = calloc(1, sizeof(*w));

	if (!w)
		return CUDA_ERROR_OUT_OF_MEMORY;
	w->kind = kind;
	w->value = value;
	w->event = event;
	pthread_mutex_lock(&mock.lock);
	event->refs++;
	pthread_mutex_unlock(&mock.lock);
	return mock_put(stream, w);
}

CUresult mock_event_record(CUevent event, CUstream stream)
{
	struct mock_capture *before;
	struct CUstream_st *s;
	uint64_t value;
	bool captured;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	before = event->capture;
	event->capture = s->capture;
	captured = s->capture != NULL;
	if (captured)
		s->capture->refs++;
	else
		event->recorded++;
	value = event->recorded;
	pthread_mutex_unlock(&mock.lock);
	if (before)
		mock_capture_put(before);
	return captured ? CUDA_SUCCESS
			: put_event(stream, MOCK_WORK_RECORD, event, value);
}

CUresult mock_event_query(CUevent event)
{
	CUresult rc = mock_ready();

	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS && (mock_unsafe() || event->capture))
		rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (rc == CUDA_SUCCESS && event->done < event->recorded)
		rc = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_stream_wait_event(CUstream stream, CUevent event, unsigned flags)
{
	struct mock_capture *c;
	struct CUstream_st *s;
	uint64_t value;
	CUresult rc;

	(void)flags;
	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	c = event->capture;
	value = event->recorded;
	if (c && !c->graph) {
		rc = CUDA_ERROR_INVALID_VALUE; /* of a capture that has ended */
	} else if (c && s->capture != c) {
		if (s->capture)
			rc = CUDA_ERROR_INVALID_VALUE;
		else
			c->refs++;
		if (rc == CUDA_SUCCESS)
			s->capture = c;
	} else if (!c && s->capture) {
		rc = CUDA_ERROR_INVALID_VALUE; /* on what is outside its capture */
	}
	pthread_mutex_unlock(&mock.lock);
	if (rc != CUDA_SUCCESS || c || value == 0)
		return rc;
	return put_event(stream, MOCK_WORK_AFTER, event, value);
}

void mock_capture_put(struct mock_capture *capture)
{
	bool last;

	pthread_mutex_lock(&mock.lock);
	last = --capture->refs == 0;
	pthread_mutex_unlock(&mock.lock);
	if (last)
		free(capture);
}

CUresult mock_stream_begin_capture(CUstream stream, int mode)
{
	struct mock_capture *c = calloc(1, sizeof(*c));
	struct CUgraph_st *graph = calloc(1, sizeof(*graph));
	struct CUstream_st *s;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc == CUDA_SUCCESS && (!c || !graph))
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	/* The default stream cannot be captured. */
	if (rc == CUDA_SUCCESS && !stream)
		rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	pthread_mutex_lock(&mock.lock);
	if (rc == CUDA_SUCCESS && s->capture)
		rc = CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS) {
		graph->refs = 1;
		graph->last = &graph->first;
		c->id = ++mock.last_capture;
		c->graph = graph;
		c->origin = s;
		c->thread = pthread_self();
		c->mode = mode;
		c->refs = 1;
		c->next = mock.captures;
		mock.captures = c;
		s->capture = c;
	}
	pthread_mutex_unlock(&mock.lock);
	if (rc != CUDA_SUCCESS) {
		free(c);
		free(graph);
	}
	return rc;
}

/* Streams that joined leave; how many there were. Under the lock. */
static int leave_all(struct mock_capture *c)
{
	int count = 0;

	for (struct CUstream_st *s = mock.streams; s; s = s->next) {
		if (s->capture != c)
			continue;
		s->capture = NULL;
		count++;
	}
	return count;
}

CUresult mock_stream_end_capture(CUstream stream, CUgraph *graph)
{
	struct CUgraph_st *made = NULL;
	struct mock_capture *c, **at;
	struct CUstream_st *s;
	int count = 0;
	CUresult rc;

	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	c = s->capture;
	if (!c || c->origin != s) {
		rc = c ? CUDA_ERROR_STREAM_CAPTURE_UNMATCHED : CUDA_ERROR_INVALID_VALUE;
	} else {
		made = c->graph;
		c->graph = NULL;
		for (at = &mock.captures; *at != c; at = &(*at)->next)
			;
		*at = c->next;
		if (c->broken)
			rc = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		count = leave_all(c);
	}
	pthread_mutex_unlock(&mock.lock);
	for (int i = 0; i < count; i++)
		mock_capture_put(c);
	if (rc != CUDA_SUCCESS) {
		if (made)
			mock_graph_put(made);
		made = NULL;
	}
	*graph = made;
	return rc;
}

CUresult mock_stream_get_capture_info(CUstream stream, int *status, uint64_t *id,
				      CUgraph *graph, const CUgraphNode **deps,
				      size_t *count)
{
	struct CUstream_st *s;
	CUresult rc;

	(void)deps;
	(void)count;
	rc = stream_of(stream, &s);
	if (rc != CUDA_SUCCESS)
		return rc;
	pthread_mutex_lock(&mock.lock);
	*status = !s->capture	       ? CU_STREAM_CAPTURE_STATUS_NONE
		  : s->capture->broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
				       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	if (s->capture && id)
		*id = s->capture->id;
	if (s->capture && graph)
		*graph = s->capture->graph;
	pthread_mutex_unlock(&mock.lock);
	return CUDA_SUCCESS;
}
