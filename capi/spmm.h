/* The C interface of spmm: products of sparse and dense matrices on CUDA, Vulkan, WebGPU and CPU.
 *
 *     spmm_device dev;
 *     spmm_plan plan;
 *     spmm_device_open("auto", &dev);
 *     spmm_plan_csr(dev, &a, NULL, &plan);        // packs A once
 *     spmm_plan_multiply(plan, n, 1, &b, 0, &c, NULL);
 *     spmm_plan_close(plan);
 *     spmm_device_close(dev);
 *
 * Each function returns SPMM_OK or another spmm_status; spmm_last_error then says in one line what was wrong and what
 * would be right, to the thread that made the call. All functions may be called from any thread, but not in a child of
 * fork that does not call exec: that is SPMM_FORKED. The library stays loaded after dlclose. */
#ifndef SPMM_H
#define SPMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPMM_ABI 1 /* the version of this interface, and of its symbols (SPMM_1) */

/* Handles. 0 is none. A handle that was closed is SPMM_CLOSED in later calls. */
typedef struct { uint64_t id; } spmm_device;
typedef struct { uint64_t id; } spmm_plan;
typedef struct { uint64_t id; } spmm_tensor;
typedef struct { uint64_t id; } spmm_sequence;

typedef enum {
	SPMM_OK,
	SPMM_INVALID,       /* arguments: a size, a type, a matrix that is not canonical */
	SPMM_UNAVAILABLE,   /* no driver, or no such device */
	SPMM_UNSUPPORTED,   /* the device or the plan cannot do that */
	SPMM_COMPILE,       /* the driver refuses a kernel */
	SPMM_OUT_OF_MEMORY, /* too little memory; the device stays usable */
	SPMM_LOST,          /* the device stopped answering: end the process */
	SPMM_CLOSED,        /* a handle that was closed, or never was one */
	SPMM_CANCELLED,     /* spmm_cancel ended the call */
	SPMM_DEFECT,        /* a defect of the library */
	SPMM_FORKED         /* the process was forked after the library was loaded */
} spmm_status;

/* Element types. TF32 is a precision only, I32 and I64 are types of indices, S8 and E4M3 those of quantised values. */
typedef enum {
	SPMM_DEFAULT, SPMM_F16, SPMM_BF16, SPMM_F32, SPMM_F64, SPMM_TF32, SPMM_I32, SPMM_I64, SPMM_S8, SPMM_E4M3
} spmm_type;

/* A sparse matrix in CSR, which is copied: columns of a row strictly ascending, unless it is unsorted. With by_columns
 * it is in CSC: row_ptr has cols + 1 offsets and col_idx has rows. */
typedef struct {
	int64_t rows, cols, nnz;
	const void *row_ptr, *col_idx, *values;
	int32_t row_ptr_type, col_idx_type; /* SPMM_I32 or SPMM_I64 */
	int32_t type;                       /* of values: SPMM_F16, BF16, F32 or F64 */
	int32_t by_columns;
	int32_t unsorted;  /* columns come in any order and several times: they are sorted and summed (CSR only) */
	int32_t in_device; /* the arrays are in the memory of the plan's CUDA device, and what writes them is done */
} spmm_csr;

/* A dense matrix: element (i, j) is data[i*ld + j], or data[j*ld + i] if it is column-major. */
typedef struct {
	void *data;
	int64_t ld; /* elements from row to row (column to column) */
	int32_t type;
	int32_t column_major;
} spmm_dense;

/* How the devices of a group share a product, and where B lies before it; AT + i: on device i of them. */
enum { SPMM_SPLIT_AUTO, SPMM_SPLIT_COLUMNS, SPMM_SPLIT_ROWS };
enum { SPMM_IN_PLACE, SPMM_REPLICATED, SPMM_IN_COLUMNS, SPMM_IN_ROWS, SPMM_AT };

/* How a matrix is prepared. All zeros choose everything. */
typedef struct {
	const char *format;   /* NULL: the one that is predicted to be the fastest */
	const char *variant;  /* NULL, or a kernel of the format */
	int32_t precision;    /* SPMM_DEFAULT: the type of the values */
	int32_t quantise;     /* SPMM_DEFAULT: not; SPMM_S8, SPMM_E4M3: values of 8 bits with scales */
	int32_t transpose;    /* multiply by the transpose */
	int32_t right;        /* C = B·A */
	int32_t reproducible; /* 0: fast; 15, 23, 31, 47: the same bits on every device; -1: the least that loses nothing */
	int32_t tune;         /* measure formats */
	int32_t split;        /* SPMM_SPLIT_… */
	int32_t from;         /* where B lies in a group, if not where the split needs it */
	int32_t reserved;     /* 0 */
	int64_t n;            /* columns of B (rows, with right) to choose for; 0: 128 */
	int64_t uses;         /* about how many products there will be, to weigh the time to pack; 0: unknown */
	int64_t memory;       /* bytes of the device that may be used; 0: all */
} spmm_options;

/* act(alpha·A·B + beta·C + bias). The bias is in the memory that B is in. */
typedef struct {
	const void *bias; /* NULL: none */
	int32_t bias_type;
	int32_t bias_of_rows; /* an element for each row of C; else for each column */
	int32_t activation;   /* 0 none, 1 ReLU, 2 GELU (tanh), 3 SiLU */
	int32_t reserved;     /* 0 */
} spmm_epilogue;

/* The results of a sampled product, one for each entry of A in the order in which they were given. */
typedef struct {
	void *results;
	const void *scale; /* numbers that they are multiplied by; NULL: none */
	int32_t type, scale_type;
	int32_t softmax;   /* then the softmax of each row, of a matrix that was given by rows */
	int32_t reserved;  /* 0 */
} spmm_sampled;

/* The message of the thread's last call that failed; "" if there is none. It is valid until the next one fails. */
const char *spmm_last_error(void);
/* SPMM_ABI of the library that is loaded. */
int spmm_abi(void);
/* Ends all calls in progress, of all threads: SPMM_CANCELLED. */
void spmm_cancel(void);
/* Sets something before the first device: "cache_folder", which keeps measured rates, in place of the user's cache
 * folder or SPMM_CACHE; "cuda_library", the driver's file, in place of libcuda.so.1 or SPMM_CUDA_LIBRARY. */
spmm_status spmm_set(const char *setting, const char *value);

/* Opens "auto", "cuda", "cuda:1", "vulkan", "cpu"; a list or "cuda:all" opens several devices that multiply
 * together. */
spmm_status spmm_device_open(const char *name, spmm_device *device);
/* Makes one handle of opened devices, a group, whose members multiply together; it is used as a device is. Each is in
 * it once. They can be used alone, too, until they are closed, which closing the group does. */
spmm_status spmm_device_join(const spmm_device *devices, int32_t count, spmm_device *group);
/* Frees the device with all plans and tensors on it; of a group, all its devices. A second close does nothing, as for all handles. */
spmm_status spmm_device_close(spmm_device device);
/* Writes what is known as JSON to buf of *size bytes, with a final zero, and to *size the bytes needed. If these
 * are more than there are, nothing is written. */
spmm_status spmm_device_info(spmm_device device, char *buf, size_t *size);

/* Packs a matrix of CSR or CSC for multiplying. options may be NULL. */
spmm_status spmm_plan_csr(spmm_device device, const spmm_csr *a, const spmm_options *options, spmm_plan *plan);
/* The same for a dense matrix of rows × cols. With drop_zeros its zeros are not entries. */
spmm_status spmm_plan_dense(spmm_device device, int64_t rows, int64_t cols, const spmm_dense *a, int32_t drop_zeros,
                            const spmm_options *options, spmm_plan *plan);
/* Waits for what was submitted and frees the plan; one that a CUDA graph has captured is freed with the device. */
spmm_status spmm_plan_close(spmm_plan plan);
spmm_status spmm_plan_info(spmm_plan plan, char *buf, size_t *size);

/* C = alpha·A·B + beta·C for B (K×n) and C (M×n) in the host's memory; with right C = alpha·B·A + beta·C for B
 * (n×K) and C (n×M). epilogue may be NULL. */
spmm_status spmm_plan_multiply(spmm_plan plan, int64_t n, double alpha, const spmm_dense *b, double beta,
                               const spmm_dense *c, const spmm_epilogue *epilogue);
/* The same for B and C in the memory of a CUDA device, in order with the work of a CUstream; 0 is the default
 * stream. It returns when the product is submitted, waits for nothing and records no event, and is legal while the
 * stream captures a graph. Work in two streams is in no order but the caller's. What is written must be at multiples
 * of 4 bytes, what is read at those of its elements. */
spmm_status spmm_plan_enqueue(spmm_plan plan, uint64_t stream, int64_t n, double alpha, const spmm_dense *b,
                              double beta, const spmm_dense *c, const spmm_epilogue *epilogue);
/* Loads the kernels and allocates the workspace of that product, and multiplies nothing: before a capture. */
spmm_status spmm_plan_ready(spmm_plan plan, uint64_t stream, int64_t n, double alpha, const spmm_dense *b, double beta,
                            const spmm_dense *c, const spmm_epilogue *epilogue);
/* Replaces the nnz values of A's entries, in the order in which they were given: from the host's memory, or from a
 * CUDA device's in order with a stream. The first call finds the entries' places, and waits. */
spmm_status spmm_plan_set_values(spmm_plan plan, int64_t nnz, const void *values, int32_t type);
spmm_status spmm_plan_enqueue_values(spmm_plan plan, uint64_t stream, int64_t nnz, const void *values, int32_t type);
/* S = pattern ⊙ (X·Yᵀ): for each entry (i, j) of A the dot product of row i of X and row j of Y, in the host's memory.
 * X has a row for each row of A, Y for each column (of the transpose, with transpose), and both have n columns. With
 * C = A·B, X = ∂C and Y = B give the gradient of A's values. */
spmm_status spmm_plan_sample(spmm_plan plan, int64_t n, const spmm_dense *x, const spmm_dense *y,
                             const spmm_sampled *s);
/* The same in the memory of a CUDA device, in order with a stream. The first copies the pattern, and waits. */
spmm_status spmm_plan_enqueue_sample(spmm_plan plan, uint64_t stream, int64_t n, const spmm_dense *x,
                                     const spmm_dense *y, const spmm_sampled *s);

/* A dense matrix on any device, with undefined contents. */
spmm_status spmm_tensor_new(spmm_device device, int64_t rows, int64_t cols, int32_t type, int32_t column_major,
                            spmm_tensor *tensor);
spmm_status spmm_tensor_upload(spmm_tensor tensor, const spmm_dense *from);
spmm_status spmm_tensor_download(spmm_tensor tensor, const spmm_dense *to);
spmm_status spmm_tensor_close(spmm_tensor tensor);
/* C = act(alpha·A·B + beta·C + bias) for tensors; a bias of {0} is none. It waits. */
spmm_status spmm_plan_run(spmm_plan plan, double alpha, spmm_tensor b, double beta, spmm_tensor c, spmm_tensor bias,
                          int32_t bias_of_rows, int32_t activation);

/* Products that are recorded once and run many times by one call. */
spmm_status spmm_sequence_new(spmm_device device, spmm_sequence *sequence);
spmm_status spmm_sequence_add(spmm_sequence sequence, spmm_plan plan, double alpha, spmm_tensor b, double beta,
                              spmm_tensor c, spmm_tensor bias, int32_t bias_of_rows, int32_t activation);
spmm_status spmm_sequence_run(spmm_sequence sequence);
spmm_status spmm_sequence_close(spmm_sequence sequence);

#ifdef __cplusplus
}
#endif
#endif
