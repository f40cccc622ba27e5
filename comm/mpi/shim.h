// MPI's functions through one interface for the three ABIs: no header and no library of MPI is needed to build this.
#ifndef SPMM_MPI_SHIM_H
#define SPMM_MPI_SHIM_H

#include <stdint.h>

// The ABIs: Open MPI's handles are pointers, MPICH's are ints, and the MPI-5 standard's are pointers with fixed values.
enum { SM_NONE, SM_OPENMPI, SM_MPICH, SM_STANDARD };
enum { SM_SUM, SM_MAX };

typedef uint64_t sm_handle;

// sm_signals_save keeps the handlers of signals, and sm_signals_restore gives them back: before a library is opened and
// once it is initialised.
void sm_signals_save(void);
void sm_signals_restore(void);
// sm_open loads a library and finds its functions. It returns its ABI, or SM_NONE and why in error.
int sm_open(const char *path, char *error, int length);
// sm_init initialises MPI for calls by this thread; errors are returned from then on.
int sm_init(void);
int sm_finalize(void);
void sm_abort(int code);
int sm_version(char *text, int length);
void sm_error(int code, char *text, int length);

sm_handle sm_world(void);
sm_handle sm_byte(void);
int sm_rank(sm_handle comm, int *rank);
int sm_size(sm_handle comm, int *size);
int sm_barrier(sm_handle comm);
int sm_bcast(void *data, int count, int root, sm_handle comm);
int sm_allreduce(int64_t *data, int count, int op, sm_handle comm);
int sm_alltoallv(const void *send, const int *scounts, const int *sstarts, void *recv, const int *rcounts,
        const int *rstarts, sm_handle type, sm_handle comm);
int sm_allgatherv(const void *send, int count, void *recv, const int *counts, const int *starts, sm_handle type,
        sm_handle comm);
// sm_items makes the type of `bytes` bytes in a row, so that counts are of items.
int sm_items(int bytes, sm_handle *type);
int sm_items_free(sm_handle type);

#endif
