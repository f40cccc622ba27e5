// The header in C++, and a product of a matrix that stays in the caller's containers.
#include <cstdio>
#include <stdexcept>
#include <vector>

#include <spmm.h>

static void check(spmm_status s)
{
	if (s != SPMM_OK)
		throw std::runtime_error(spmm_last_error());
}

int main()
{
	std::vector<int64_t> ptr{0, 1, 2};
	std::vector<int32_t> idx{1, 0};
	std::vector<double> val{2, 3}, b{1, 10}, c(2);
	spmm_device dev;
	check(spmm_device_open("cpu", &dev));
	spmm_csr a{};
	a.rows = a.cols = a.nnz = 2;
	a.row_ptr = ptr.data(), a.col_idx = idx.data(), a.values = val.data();
	a.row_ptr_type = SPMM_I64, a.col_idx_type = SPMM_I32, a.type = SPMM_F64;
	spmm_plan plan;
	check(spmm_plan_csr(dev, &a, nullptr, &plan));
	spmm_dense x{b.data(), 1, SPMM_F64, 0}, y{c.data(), 1, SPMM_F64, 0};
	check(spmm_plan_multiply(plan, 1, 1, &x, 0, &y, nullptr));
	try {
		check(spmm_device_open("none", &dev));
		return 1;
	} catch (const std::runtime_error &) {
	}
	check(spmm_plan_close(plan));
	check(spmm_device_close(dev));
	if (c[0] != 20 || c[1] != 3)
		return 1;
	std::puts("all passed");
}
