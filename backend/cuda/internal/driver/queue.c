//go:build cuda && cgo && linux && (amd64 || arm64)

#define _GNU_SOURCE
#include <sched.h>
#include <time.h>
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
	CUresult r = first ? cuEventRecord(q->start, q->stream) : CUDA_SUCCESS;
	if (!r)
		r = launch_all(q);
	if (!r)
		r = cuEventRecord(last ? q->stop : q->fence[q->batches & 1], q->stream);
	if (r) {
		CUresult done = cuStreamSynchronize(q->stream);
		r = r ? r : done;
	}
	return r;
}

CUresult spmm_queue_submit(spmm_queue *q, int first, int last)
{
	if (first)
		q->batches = 0;
	q->failed = SPMM_BATCH;
	q->ended = last;
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

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static CUresult wait(CUevent e, int first)
{
	const long long end = now() + 20000000;
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

CUresult spmm_queue_wait(spmm_queue *q, int all, int first)
{
	CUcontext popped;
	CUresult r = cuCtxPushCurrent(q->ctx);
	if (r)
		return r;
	if (!all)
		r = wait(q->fence[q->batches & 1], first); /* batches - 2 */
	else if (!q->ended)
		r = wait(q->fence[(q->batches - 1) & 1], first);
	else if (!(r = wait(q->stop, first)))
		r = cuEventElapsedTime(&q->ms, q->start, q->stop);
	cuCtxPopCurrent(&popped);
	return r;
}
