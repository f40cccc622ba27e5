/* A device is used before the library is closed and after. */
#include <dlfcn.h>
#include <stdio.h>

#include <spmm.h>

static void *library;
static spmm_device dev;

static int used(void)
{
	spmm_status (*plan_dense)(spmm_device, int64_t, int64_t, const spmm_dense *, int32_t, const spmm_options *,
	                          spmm_plan *) = dlsym(library, "spmm_plan_dense");
	double x = 2;
	spmm_dense d = {&x, 1, SPMM_F64, 0};
	spmm_plan plan;
	return plan_dense && plan_dense(dev, 1, 1, &d, 0, NULL, &plan) == SPMM_OK;
}

int main(int argc, char **argv)
{
	if (argc < 2 || !(library = dlopen(argv[1], RTLD_NOW)))
		return 1;
	spmm_status (*device_open)(const char *, spmm_device *) = dlsym(library, "spmm_device_open");
	if (!device_open || device_open("cpu", &dev) != SPMM_OK || !used())
		return 2;
	void *again = device_open;
	dlclose(library);
	library = dlopen(argv[1], RTLD_NOW);
	if (!library || dlsym(library, "spmm_device_open") != again || !used())
		return 3;
	puts("all passed");
	return 0;
}
