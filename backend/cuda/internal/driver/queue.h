/* Submitting many launches in one call from Go. */
#ifndef SPMM_QUEUE_H
#define SPMM_QUEUE_H

#include "cuda.h"

enum { SPMM_BATCH = 64, SPMM_MAX_ARGS = 8, SPMM_MAX_PARAMS = 64 };

typedef struct {
	CUfunction fn;
	unsigned int grid[3], block[3];
	unsigned int shared; /* bytes of dynamic shared memory */
	unsigned int args;   /* pointers used in arg */
	unsigned int bytes;  /* of params; 0: the kernel has no block */
	CUdeviceptr arg[SPMM_MAX_ARGS];
	_Alignas(16) unsigned char params[SPMM_MAX_PARAMS];
} spmm_launch;

typedef struct {
	CUcontext ctx;
	CUstream stream;
	CUevent start, stop; /* around all batches of a run */
	CUevent fence[2];    /* after each batch but the last, by turns: at most two are in flight */
	int ended;           /* the last batch of the run was submitted */
	unsigned int batches, n;
	unsigned int failed; /* the launch of the batch that was refused; SPMM_BATCH: none */
	float ms;            /* from start to stop */
	spmm_launch launch[SPMM_BATCH];
} spmm_queue;

/* Makes and destroys the queue's stream and events. The context must be current. */
CUresult spmm_queue_make(spmm_queue *q);
CUresult spmm_queue_destroy(spmm_queue *q);

/* Submits the n launches in q and returns. The first batch of a run starts the clock, the last one
 * stops it. One that fails waits until everything submitted is done. */
CUresult spmm_queue_submit(spmm_queue *q, int first, int last);

/* Waits for the batch before the last one submitted, or for all that was submitted, 20 ms at most:
 * CUDA_ERROR_NOT_READY if it is not done then. The first look of a wait polls without sleeping. When
 * the last batch of a run is done ms is the time since the first began. */
CUresult spmm_queue_wait(spmm_queue *q, int all, int first);

#endif
