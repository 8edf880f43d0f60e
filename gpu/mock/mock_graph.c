/* SPDX-License-Identifier: BSD-2-Clause */
/* Graphs: what was captured, in the order in which it was; and kernels. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/mock/mock_api.h"

/* A module is the handle of a shared object; a function is found once. */
struct CUfunc_st {
	struct CUfunc_st *next;
	void *module;
	mock_kernel_fn *fn;
	const uint32_t *args;
	char name[128];
};

static struct CUfunc_st *functions;

void mock_graph_put(struct CUgraph_st *graph)
{
	struct mock_work *w;
	bool last;

	pthread_mutex_lock(&mock.lock);
	last = --graph->refs == 0;
	pthread_mutex_unlock(&mock.lock);
	if (!last)
		return;
	while ((w = graph->first)) {
		graph->first = w->next;
		mock_work_free(w);
	}
	for (int i = 0; i < graph->objects; i++) {
		graph->object[i]->destroy(graph->object[i]->ptr);
		free(graph->object[i]);
	}
	free(graph);
}

CUresult mock_graph_destroy(CUgraph graph)
{
	mock_graph_put(graph);
	return CUDA_SUCCESS;
}

CUresult mock_graph_instantiate(CUgraphExec *exec, CUgraph graph,
				unsigned long long flags)
{
	struct CUgraphExec_st *x = calloc(1, sizeof(*x));

	if (!x || flags) {
		free(x);
		return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	}
	x->graph = graph;
	pthread_mutex_lock(&mock.lock);
	graph->refs++;
	pthread_mutex_unlock(&mock.lock);
	*exec = x;
	return CUDA_SUCCESS;
}

CUresult mock_graph_exec_destroy(CUgraphExec exec)
{
	mock_graph_put(exec->graph);
	free(exec);
	return CUDA_SUCCESS;
}

CUresult mock_graph_launch(CUgraphExec exec, CUstream stream)
{
	struct mock_work *drop;
	CUresult rc;

	if (stream && stream->capture)
		return CUDA_ERROR_NOT_SUPPORTED;
	drop = calloc(1, sizeof(*drop));
	if (!drop)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct mock_work *w = exec->graph->first; w; w = w->next) {
		struct mock_work *copy = mock_work_copy(w);

		rc = copy ? mock_put(stream, copy) : CUDA_ERROR_OUT_OF_MEMORY;
		if (rc != CUDA_SUCCESS) {
			free(drop);
			return rc;
		}
	}
	/* What the graph keeps stays until this replay is over. */
	drop->kind = MOCK_WORK_DROP;
	drop->graph = exec->graph;
	pthread_mutex_lock(&mock.lock);
	exec->graph->refs++;
	pthread_mutex_unlock(&mock.lock);
	return mock_put(stream, drop);
}

CUresult mock_user_object_create(CUuserObject *object, void *ptr, CUhostFn destroy,
				 unsigned count, unsigned flags)
{
	struct CUuserObject_st *o;

	if (count != 1 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	o = calloc(1, sizeof(*o));
	if (!o)
		return CUDA_ERROR_OUT_OF_MEMORY;
	o->ptr = ptr;
	o->destroy = destroy;
	o->refs = 1;
	*object = o;
	return CUDA_SUCCESS;
}

CUresult mock_graph_retain_user_object(CUgraph graph, CUuserObject object, unsigned count,
				       unsigned flags)
{
	CUresult rc = CUDA_SUCCESS;

	if (count != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&mock.lock);
	if (graph->objects == MOCK_OBJECTS)
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	else
		graph->object[graph->objects++] = object;
	pthread_mutex_unlock(&mock.lock);
	return rc;
}

CUresult mock_module_load(CUmodule *module, const char *file)
{
	int device;
	CUresult rc;
	void *handle;

	rc = mock_current(&device);
	if (rc != CUDA_SUCCESS)
		return rc;
	mock_idle(device, "cuModuleLoad");
	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		return CUDA_ERROR_FILE_NOT_FOUND;
	*module = (CUmodule)handle;
	return CUDA_SUCCESS;
}

/* Device code, which this is no machine for. */
CUresult mock_module_load_data(CUmodule *module, const void *image)
{
	(void)module;
	(void)image;
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* The shared object stays: its functions may be in graphs. */
CUresult mock_module_unload(CUmodule module)
{
	return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* Under the lock. */
static struct CUfunc_st *function_new(void *module, const char *name)
{
	char args[sizeof(((struct CUfunc_st *)0)->name) + 8];
	struct CUfunc_st *f = calloc(1, sizeof(*f));
	void *address = dlsym(module, name);

	if (!f || !address || strlen(name) >= sizeof(f->name)) {
		free(f);
		return NULL;
	}
	snprintf(args, sizeof(args), "%s_args", name);
	snprintf(f->name, sizeof(f->name), "%s", name);
	memcpy(&f->fn, &address, sizeof(f->fn));
	f->args = dlsym(module, args);
	f->module = module;
	if (!f->args) {
		free(f);
		return NULL;
	}
	f->next = functions;
	functions = f;
	return f;
}

CUresult mock_module_get_function(CUfunction *function, CUmodule module, const char *name)
{
	struct CUfunc_st *f;

	pthread_mutex_lock(&mock.lock);
	for (f = functions; f; f = f->next) {
		if (f->module == (void *)module && strcmp(f->name, name) == 0)
			break;
	}
	if (!f)
		f = function_new(module, name);
	pthread_mutex_unlock(&mock.lock);
	if (!f)
		return CUDA_ERROR_NOT_FOUND;
	*function = f;
	return CUDA_SUCCESS;
}

CUresult mock_func_load(CUfunction function)
{
	return function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The call, the pointers to its arguments with a NULL behind them, and their bytes, each
 * aligned to 16: one allocation. */
static struct mock_kernel_call *call_new(const struct CUfunc_st *f, void **args,
					 size_t *len)
{
	size_t count = 0, bytes = 0, at;
	struct mock_kernel_call *call;

	for (; f->args[count]; count++)
		bytes += (f->args[count] + 15u) & ~(size_t)15;
	at = (sizeof(*call) + (count + 1) * sizeof(void *) + 15) & ~(size_t)15;
	*len = at + bytes;
	call = calloc(1, *len);
	if (!call)
		return NULL;
	call->fn = f->fn;
	call->args = (void **)(call + 1);
	for (size_t i = 0; i < count; i++) {
		call->args[i] = (char *)call + at;
		memcpy(call->args[i], args[i], f->args[i]);
		at += (f->args[i] + 15u) & ~(size_t)15;
	}
	return call;
}

CUresult mock_launch_kernel(CUfunction f, unsigned grid_x, unsigned grid_y,
			    unsigned grid_z, unsigned block_x, unsigned block_y,
			    unsigned block_z, unsigned shared, CUstream stream,
			    void **args, void **extra)
{
	struct mock_work *w;

	if (!f || extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y ||
	    !block_z || (uint64_t)block_x * block_y * block_z > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	w = calloc(1, sizeof(*w));
	if (w)
		w->kernel = call_new(f, args, &w->kernel_len);
	if (!w || !w->kernel) {
		free(w);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	w->kind = MOCK_WORK_KERNEL;
	w->kernel->grid = (struct mock_grid){
		{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared};
	return mock_put(stream, w);
}
