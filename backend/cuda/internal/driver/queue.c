//go:build cuda && cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>
#include "queue.h"

CUresult spmm_clock_make(spmm_clock *c)
{
	CUresult r = cuEventCreate(&c->start, CU_EVENT_DEFAULT);
	return r ? r : cuEventCreate(&c->stop, CU_EVENT_DEFAULT);
}

static CUresult destroy_events(CUevent a, CUevent b)
{
	CUresult first = a ? cuEventDestroy(a) : CUDA_SUCCESS;
	CUresult r = b ? cuEventDestroy(b) : CUDA_SUCCESS;
	return first ? first : r;
}

CUresult spmm_clock_destroy(spmm_clock *c) { return destroy_events(c->start, c->stop); }

CUresult spmm_queue_make(spmm_queue *q)
{
	CUresult r = cuStreamCreate(&q->stream, CU_STREAM_NON_BLOCKING);
	if (!r)
		r = spmm_clock_make(&q->own);
	for (int i = 0; i < 2 && !r; i++)
		r = cuEventCreate(&q->fence[i], CU_EVENT_DISABLE_TIMING);
	return r;
}

CUresult spmm_queue_destroy(spmm_queue *q)
{
	CUresult first = spmm_clock_destroy(&q->own);
	CUresult r = destroy_events(q->fence[0], q->fence[1]);
	first = first ? first : r;
	r = q->stream ? cuStreamDestroy(q->stream) : CUDA_SUCCESS;
	return first ? first : r;
}

enum { SPMM_ARGV = SPMM_MAX_ARGS + 1 + SPMM_MAX_MAPS };

/* arguments points argv at what the kernel of a launch takes, and tells what is wrong with it. */
static CUresult arguments(spmm_launch *l, void *argv[SPMM_ARGV])
{
	unsigned int n = 0;
	for (unsigned int i = 0; i < l->args; i++)
		argv[n++] = &l->arg[i];
	if (l->bytes)
		argv[n++] = l->params;
	for (unsigned int i = 0; i < l->maps; i++)
		argv[n++] = l->map[i];
	return l->bad;
}

/* swizzle is the exchange of chunks in shared memory for rows of `cols` 16-bit elements. */
static CUtensorMapSwizzle swizzle(unsigned int cols)
{
	switch (cols) {
	case 64:
		return CU_TENSOR_MAP_SWIZZLE_128B;
	case 32:
		return CU_TENSOR_MAP_SWIZZLE_64B;
	case 16:
		return CU_TENSOR_MAP_SWIZZLE_32B;
	}
	return CU_TENSOR_MAP_SWIZZLE_NONE;
}

static CUresult encode(CUtensorMap *map, CUdeviceptr matrix, unsigned int rows, unsigned int cols, unsigned int pitch,
                       unsigned int box_rows, unsigned int box_cols)
{
	return cuTensorMapEncodeTiled(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, (void *)matrix, (cuuint64_t[]){cols, rows},
	                              (cuuint64_t[]){2ull * pitch}, (cuuint32_t[]){box_cols, box_rows}, (cuuint32_t[]){1, 1},
	                              CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(box_cols),
	                              CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

void spmm_queue_map(spmm_queue *q, CUdeviceptr matrix, unsigned int rows, unsigned int cols, unsigned int pitch,
                    unsigned int box_rows, unsigned int box_cols)
{
	spmm_launch *l = &q->launch[q->n - 1];
	CUtensorMap map = {0};
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx); /* the call wants one, though it touches no device */
	if (!r) {
		r = encode(&map, matrix, rows, cols, pitch, box_rows, box_cols);
		cuCtxPopCurrent(&popped);
	}
	l->bad = l->bad ? l->bad : r;
	memcpy(l->map[l->maps++], &map, sizeof map);
}

/* launch_early lets the launch begin before the one before it is done: programmatic dependent launch. */
static CUresult launch_early(spmm_launch *l, CUstream stream, void **argv)
{
	CUlaunchAttribute overlap = {
		.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.programmaticStreamSerializationAllowed = 1,
	};
	CUlaunchConfig c = {
		.gridDimX = l->grid[0], .gridDimY = l->grid[1], .gridDimZ = l->grid[2],
		.blockDimX = l->block[0], .blockDimY = l->block[1], .blockDimZ = l->block[2],
		.sharedMemBytes = l->shared, .hStream = stream,
		.attrs = &overlap, .numAttrs = 1,
	};
	return cuLaunchKernelEx(&c, l->fn, argv, NULL);
}

static CUresult launch(spmm_launch *l, CUstream stream)
{
	void *argv[SPMM_ARGV];
	CUresult r = arguments(l, argv);
	if (r)
		return r;
	if (l->overlap) {
		r = launch_early(l, stream, argv);
		if (r != CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND) /* a driver before CUDA 11.8 */
			return r;
	}
	return cuLaunchKernel(l->fn, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
	                      l->block[2], l->shared, stream, argv, NULL);
}

static CUresult launch_all(spmm_queue *q)
{
	if (q->graph)
		return cuGraphLaunch(q->graph->exec, q->stream);
	for (unsigned int i = 0; i < q->n; i++) {
		CUresult r = launch(&q->launch[i], q->stream);
		if (r) {
			q->failed = i;
			return r;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult submit(spmm_queue *q, int first, int last)
{
	CUresult r = first ? cuEventRecord(q->clock->start, q->stream) : CUDA_SUCCESS;
	if (!r)
		r = launch_all(q);
	if (!r)
		r = cuEventRecord(last ? q->clock->stop : q->fence[q->batches & 1], q->stream);
	if (r) {
		CUresult done = cuStreamSynchronize(q->stream);
		r = r ? r : done;
	}
	return r;
}

CUresult spmm_queue_submit(spmm_queue *q, spmm_clock *clock, int first, int last)
{
	if (first)
		q->batches = 0;
	q->clock = clock;
	q->failed = SPMM_BATCH;
	q->ended = last;
	clock->ms = 0;
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (!r) {
		r = submit(q, first, last);
		cuCtxPopCurrent(&popped);
	}
	q->batches++;
	q->n = 0;
	q->graph = NULL;
	return r;
}

static CUresult enqueue(spmm_queue *q, CUstream stream, int *captured)
{
	CUcontext ctx = q->ctx;
	CUstreamCaptureStatus status;
	/* the handles up to 2 stand for default streams, which are of the current context */
	CUresult r = (uintptr_t)stream > 2 ? cuStreamGetCtx(stream, &ctx) : CUDA_SUCCESS;
	if (!r && ctx != q->ctx)
		r = CUDA_ERROR_INVALID_CONTEXT;
	if (!r)
		r = cuStreamIsCapturing(stream, &status);
	if (r)
		return r;
	*captured = status != CU_STREAM_CAPTURE_STATUS_NONE;
	for (unsigned int i = 0; i < q->n && !r; i++) {
		r = launch(&q->launch[i], stream);
		q->failed = r ? i : SPMM_BATCH;
	}
	return r;
}

CUresult spmm_queue_enqueue(spmm_queue *q, CUstream stream, int *captured)
{
	CUcontext current = NULL, popped;
	q->failed = SPMM_BATCH;
	CUresult r = cuCtxGetCurrent(&current);
	const int other = !r && current != q->ctx;
	if (other)
		r = cuCtxPushCurrent(q->ctx);
	if (!r) {
		r = enqueue(q, stream, captured);
		if (other)
			cuCtxPopCurrent(&popped);
	}
	q->n = 0;
	return r;
}

CUresult spmm_context_wait(spmm_queue *q)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	r = cuCtxSynchronize();
	cuCtxPopCurrent(&popped);
	return r;
}

CUresult spmm_clock_order(spmm_queue *q, spmm_clock *c, CUstream stream)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	r = cuStreamWaitEvent(stream, c->stop, 0);
	cuCtxPopCurrent(&popped);
	return r;
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static CUresult wait(CUevent e, long long most, int first)
{
	const long long end = now() + most;
	for (;;) {
		CUresult r = cuEventQuery(e);
		if (r != CUDA_ERROR_NOT_READY || now() >= end)
			return r;
		if (first)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
}

static CUresult wait_clock(spmm_clock *c, long long most, int first)
{
	CUresult r = wait(c->stop, most, first);
	return r ? r : cuEventElapsedTime(&c->ms, c->start, c->stop);
}

enum { LOOK = 20000000 }; /* nanoseconds */

CUresult spmm_queue_wait(spmm_queue *q, int all, int first)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	if (!all)
		r = wait(q->fence[q->batches & 1], LOOK, first); /* batches - 2 */
	else if (!q->ended)
		r = wait(q->fence[(q->batches - 1) & 1], LOOK, first);
	else
		r = wait_clock(q->clock, LOOK, first);
	cuCtxPopCurrent(&popped);
	return r;
}

CUresult spmm_clock_wait(spmm_queue *q, spmm_clock *c, long long most, int first)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	r = wait_clock(c, most, first);
	cuCtxPopCurrent(&popped);
	return r;
}

/* follow_early has a node begin before the one before it is done, as launch_early does. */
static CUresult follow_early(spmm_graph *g, CUgraphNode node)
{
	CUgraphEdgeData early = {
		.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC,
	};
	CUresult r = cuGraphAddDependencies_v2(g->graph, &g->last, &node, &early, 1);
	if (r) /* a driver before CUDA 12.3 */
		r = cuGraphAddDependencies(g->graph, &g->last, &node, 1);
	return r;
}

static CUresult add_node(spmm_graph *g, spmm_launch *l)
{
	void *argv[SPMM_ARGV];
	CUresult r = arguments(l, argv);
	if (r)
		return r;
	CUDA_KERNEL_NODE_PARAMS p = {
		.func = l->fn,
		.gridDimX = l->grid[0], .gridDimY = l->grid[1], .gridDimZ = l->grid[2],
		.blockDimX = l->block[0], .blockDimY = l->block[1], .blockDimZ = l->block[2],
		.sharedMemBytes = l->shared,
		.kernelParams = argv, /* copied by the call */
	};
	CUgraphNode node;
	int early = g->last && l->overlap, after = g->last && !early;
	r = cuGraphAddKernelNode(&node, g->graph, after ? &g->last : NULL, after, &p);
	if (!r && early)
		r = follow_early(g, node);
	if (!r)
		g->last = node;
	return r;
}

CUresult spmm_graph_add(spmm_queue *q, spmm_graph *g)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	if (!g->graph)
		r = cuGraphCreate(&g->graph, 0);
	for (unsigned int i = 0; i < q->n && !r; i++)
		r = add_node(g, &q->launch[i]);
	cuCtxPopCurrent(&popped);
	q->n = 0;
	return r;
}

CUresult spmm_graph_make(spmm_queue *q, spmm_graph *g)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	r = cuGraphInstantiateWithFlags(&g->exec, g->graph, 0);
	CUresult freed = cuGraphDestroy(g->graph);
	g->graph = NULL;
	g->last = NULL;
	cuCtxPopCurrent(&popped);
	return r ? r : freed;
}

CUresult spmm_graph_destroy(spmm_graph *g)
{
	CUresult first = g->exec ? cuGraphExecDestroy(g->exec) : CUDA_SUCCESS;
	CUresult r = g->graph ? cuGraphDestroy(g->graph) : CUDA_SUCCESS;
	return first ? first : r;
}
