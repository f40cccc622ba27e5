/* Submitting many launches in one call from Go. */
#ifndef SPMM_QUEUE_H
#define SPMM_QUEUE_H

#include "cuda.h"

enum { SPMM_BATCH = 64, SPMM_MAX_ARGS = 8, SPMM_MAX_PARAMS = 80, SPMM_MAX_MAPS = 2,
	SPMM_MAP_BYTES = sizeof(CUtensorMap) };

typedef struct {
	CUfunction fn;
	unsigned int grid[3], block[3];
	unsigned int shared; /* bytes of dynamic shared memory */
	unsigned int args;   /* pointers used in arg */
	unsigned int bytes;  /* of params; 0: the kernel has no block */
	int overlap;         /* it may begin while the one before it still runs */
	CUdeviceptr arg[SPMM_MAX_ARGS];
	unsigned int maps;   /* used in map */
	CUresult bad;        /* what was wrong with one of them */
	_Alignas(16) unsigned char params[SPMM_MAX_PARAMS];
	unsigned char map[SPMM_MAX_MAPS][SPMM_MAP_BYTES];
} spmm_launch;

/* Events before and after the launches of a run. */
typedef struct {
	CUevent start, stop;
	float ms; /* from start to stop, once that was awaited */
} spmm_clock;

/* A chain of launches that the driver has prepared. */
typedef struct {
	CUgraph graph;    /* while launches are added */
	CUgraphNode last; /* the launch added last */
	CUgraphExec exec;
} spmm_graph;

typedef struct {
	CUcontext ctx;
	CUstream stream;
	spmm_clock own;    /* of runs that are awaited before the next one */
	spmm_clock *clock; /* of the run submitted last */
	CUevent fence[2];  /* after each batch but the last, by turns: at most two are in flight */
	int ended;         /* the last batch of the run was submitted */
	unsigned int batches, n;
	unsigned int failed; /* the launch of the batch that was refused; SPMM_BATCH: none */
	spmm_graph *graph;   /* what to submit in place of launches; NULL: none */
	spmm_launch launch[SPMM_BATCH];
} spmm_queue;

/* Appends the map of a matrix of 16-bit elements with tiles of these rows and columns to those of the
   last launch in q. */
void spmm_queue_map(spmm_queue *q, CUdeviceptr matrix, unsigned int rows, unsigned int cols, unsigned int pitch,
                    unsigned int box_rows, unsigned int box_cols);

/* Makes and destroys the queue's stream and events. The context must be current. */
CUresult spmm_queue_make(spmm_queue *q);
CUresult spmm_queue_destroy(spmm_queue *q);

/* The same for the events of a clock. */
CUresult spmm_clock_make(spmm_clock *c);
CUresult spmm_clock_destroy(spmm_clock *c);

/* Submits the n launches in q, or its graph, and returns. The first batch of a run starts the clock, the last one
 * stops it. One that fails waits until everything submitted is done. */
CUresult spmm_queue_submit(spmm_queue *q, spmm_clock *clock, int first, int last);

/* Submits the n launches in q to any stream of its context, without events, and returns. It is legal while the stream
 * captures a graph: then *captured is set. Another context's stream is CUDA_ERROR_INVALID_CONTEXT. */
CUresult spmm_queue_enqueue(spmm_queue *q, CUstream stream, int *captured);

/* Waits until all streams of the queue's context are idle. */
CUresult spmm_context_wait(spmm_queue *q);

/* Has stream wait for a run that was submitted with its own clock, on the device. */
CUresult spmm_clock_order(spmm_queue *q, spmm_clock *c, CUstream stream);

/* Waits for the batch before the last one submitted, or for all that was submitted, 20 ms at most:
 * CUDA_ERROR_NOT_READY if it is not done then. The first look of a wait polls without sleeping. When
 * the last batch of a run is done its clock has the time since the first began. */
CUresult spmm_queue_wait(spmm_queue *q, int all, int first);

/* Waits for a run that was submitted with its own clock, for a number of nanoseconds at most. */
CUresult spmm_clock_wait(spmm_queue *q, spmm_clock *c, long long most, int first);

/* Adds the n launches in q to a graph, each after the one before, and makes it ready to be launched. After an error
 * of either the graph must still be destroyed. */
CUresult spmm_graph_add(spmm_queue *q, spmm_graph *g);
CUresult spmm_graph_make(spmm_queue *q, spmm_graph *g);
/* The context must be current, and the graph not running. */
CUresult spmm_graph_destroy(spmm_graph *g);

#endif
