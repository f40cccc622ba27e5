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
	CUevent fence[2];    /* after a batch: at most two are in flight */
	unsigned int batches, n;
	unsigned int failed; /* the launch of the batch that was refused; SPMM_BATCH: none */
	float ms;            /* from start to stop */
	spmm_launch launch[SPMM_BATCH];
} spmm_queue;

/* Makes and destroys the queue's stream and events. The context must be current. */
CUresult spmm_queue_make(spmm_queue *q);
CUresult spmm_queue_destroy(spmm_queue *q);

/* Submits the n launches in q. The first batch of a run starts the clock; the last, and one that
 * fails, waits until everything submitted is done. */
CUresult spmm_queue_submit(spmm_queue *q, int first, int last);

/* Waits for what was submitted. */
CUresult spmm_queue_wait(spmm_queue *q);

#endif
