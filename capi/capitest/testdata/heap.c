/* Products whose arrays are blocks of exactly their size, so that valgrind sees each access outside of them, Go's and
 * its SIMD loops' too. With the argument "short" C is one element shorter than it is said to be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <spmm.h>

enum { ROWS = 37, COLS = 29, N = 5, EACH = 3, NNZ = ROWS * EACH };

static void ok(spmm_status s)
{
	if (s == SPMM_OK)
		return;
	puts(spmm_last_error());
	exit(1);
}

static size_t bytes(int type) { return type == SPMM_F64 || type == SPMM_I64 ? 8 : type == SPMM_F32 || type == SPMM_I32 ? 4 : 2; }

/* A block of n elements, all zeros: the number 0 in every type. */
static void *block(size_t n, int type) { return calloc(n, bytes(type)); }

static void put(void *at, int type, size_t i, int64_t v)
{
	if (type == SPMM_I64)
		((int64_t *)at)[i] = v;
	else
		((int32_t *)at)[i] = (int32_t)v;
}

static spmm_csr matrix(int type, int index, int by_columns)
{
	int lines = by_columns ? COLS : ROWS, width = by_columns ? ROWS : COLS, nnz = lines * EACH;
	spmm_csr a = {.rows = ROWS, .cols = COLS, .nnz = nnz, .row_ptr_type = index, .col_idx_type = index, .type = type,
	              .by_columns = by_columns};
	void *ptr = block(lines + 1, index), *idx = block(nnz, index);
	for (int i = 0; i <= lines; i++)
		put(ptr, index, i, i * EACH);
	for (int i = 0; i < lines; i++)
		for (int j = 0; j < EACH; j++)
			put(idx, index, i * EACH + j, i % (width / EACH) + j * (width / EACH));
	a.row_ptr = ptr, a.col_idx = idx, a.values = block(nnz, type);
	return a;
}

static void products(spmm_device dev, int type, int index, int by_columns, int reproducible, int less)
{
	spmm_csr a = matrix(type, index, by_columns);
	spmm_options o = {.n = N, .reproducible = reproducible};
	spmm_plan plan;
	ok(spmm_plan_csr(dev, &a, &o, &plan));
	void *given[] = {(void *)a.row_ptr, (void *)a.col_idx, (void *)a.values};
	for (int i = 0; i < 3; i++)
		free(given[i]); /* the plan has copied them */
	void *x = block(COLS * N, type), *y = block(ROWS * N - less, type), *bias = block(ROWS, type);
	for (int order = 0; order < 2; order++) {
		spmm_dense b = {x, order ? COLS : N, type, order}, c = {y, order ? ROWS : N, type, order};
		spmm_epilogue e = {.bias = bias, .bias_type = type, .bias_of_rows = 1, .activation = 1};
		ok(spmm_plan_multiply(plan, N, 1, &b, 0, &c, NULL));
		ok(spmm_plan_multiply(plan, N, 1, &b, 1, &c, &e));
		if (less)
			continue;
		void *results = block(a.nnz, type);
		spmm_sampled s = {.results = results, .type = type};
		ok(spmm_plan_sample(plan, N, &c, &b, &s));
		ok(spmm_plan_set_values(plan, a.nnz, results, type));
		free(results);
		spmm_tensor t;
		ok(spmm_tensor_new(dev, ROWS, N, type, order, &t));
		ok(spmm_tensor_upload(t, &c));
		ok(spmm_tensor_download(t, &c));
		ok(spmm_tensor_close(t));
	}
	ok(spmm_plan_close(plan));
	free(x);
	free(y);
	free(bias);
}

int main(int argc, char **argv)
{
	static const int types[] = {SPMM_F16, SPMM_BF16, SPMM_F32, SPMM_F64};
	int less = argc > 1 && !strcmp(argv[1], "short");
	spmm_device dev;
	ok(spmm_device_open("cpu", &dev));
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		products(dev, types[i], SPMM_I32, 0, 0, less);
		products(dev, types[i], SPMM_I64, 1, 0, less);
		if (types[i] == SPMM_F32)
			products(dev, types[i], SPMM_I64, 0, 23, less);
	}
	ok(spmm_device_close(dev));
	puts("all passed");
	return 0;
}
