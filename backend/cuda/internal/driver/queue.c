//go:build cuda && cgo && linux && (amd64 || arm64)

#include "queue.h"

CUresult spmm_queue_make(spmm_queue *q)
{
	CUresult r = cuStreamCreate(&q->stream, CU_STREAM_NON_BLOCKING);
	CUevent *timed[] = {&q->start, &q->stop};
	for (int i = 0; i < 2 && !r; i++)
		r = cuEventCreate(timed[i], CU_EVENT_DEFAULT);
	for (int i = 0; i < 2 && !r; i++)
		r = cuEventCreate(&q->fence[i], CU_EVENT_DISABLE_TIMING);
	return r;
}

CUresult spmm_queue_destroy(spmm_queue *q)
{
	CUresult first = CUDA_SUCCESS;
	CUevent events[] = {q->start, q->stop, q->fence[0], q->fence[1]};
	for (int i = 0; i < 4; i++) {
		CUresult r = events[i] ? cuEventDestroy(events[i]) : CUDA_SUCCESS;
		first = first ? first : r;
	}
	CUresult r = q->stream ? cuStreamDestroy(q->stream) : CUDA_SUCCESS;
	return first ? first : r;
}

static CUresult launch(spmm_launch *l, CUstream stream)
{
	void *argv[SPMM_MAX_ARGS + 1];
	for (unsigned int i = 0; i < l->args; i++)
		argv[i] = &l->arg[i];
	if (l->bytes)
		argv[l->args] = l->params;
	return cuLaunchKernel(l->fn, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
	                      l->block[2], l->shared, stream, argv, NULL);
}

static CUresult launch_all(spmm_queue *q)
{
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
	CUresult r = CUDA_SUCCESS;
	CUevent fence = q->fence[q->batches & 1];
	if (first)
		r = cuEventRecord(q->start, q->stream);
	else if (q->batches >= 2)
		r = cuEventSynchronize(fence);
	if (!r)
		r = launch_all(q);
	if (!r)
		r = cuEventRecord(last ? q->stop : fence, q->stream);
	if (!r && !last)
		return r;
	CUresult done = cuStreamSynchronize(q->stream);
	if (!r)
		r = done;
	if (!r)
		r = cuEventElapsedTime(&q->ms, q->start, q->stop);
	return r;
}

CUresult spmm_queue_submit(spmm_queue *q, int first, int last)
{
	if (first)
		q->batches = 0;
	q->failed = SPMM_BATCH;
	q->ms = 0;
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (!r) {
		r = submit(q, first, last);
		cuCtxPopCurrent(&popped);
	}
	q->batches++;
	q->n = 0;
	return r;
}

CUresult spmm_queue_wait(spmm_queue *q)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	r = cuStreamSynchronize(q->stream);
	cuCtxPopCurrent(&popped);
	return r;
}
