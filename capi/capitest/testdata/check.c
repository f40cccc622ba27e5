/* Every function of spmm.h, and what it refuses, on the CPU. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spmm.h>

#define CHECK(x)                                                                              \
	do {                                                                                  \
		if (!(x)) {                                                                   \
			printf("line %d: %s: %s\n", __LINE__, #x, spmm_last_error());         \
			exit(1);                                                              \
		}                                                                             \
	} while (0)
#define OK(x) CHECK((x) == SPMM_OK)

/* [[1 0 2] [0 3 0]] */
static int64_t ptr[] = {0, 2, 3};
static int32_t idx[] = {0, 2, 1};
static int64_t wide[] = {0, 2, 1};
static float val[] = {1, 2, 3};

static spmm_csr matrix(void)
{
	return (spmm_csr){.rows = 2, .cols = 3, .nnz = 3, .row_ptr = ptr, .col_idx = idx, .values = val,
	                  .row_ptr_type = SPMM_I64, .col_idx_type = SPMM_I32, .type = SPMM_F32};
}

static void *other_thread(void *p)
{
	(void)p;
	return (void *)(strlen(spmm_last_error()) == 0 ? p : NULL);
}

static void products(spmm_device dev)
{
	spmm_csr a = matrix();
	spmm_plan plan;
	OK(spmm_plan_csr(dev, &a, NULL, &plan));
	float b[] = {1, 10, 100}, c[] = {5, 6}, bias[] = {-1000, 1};
	spmm_dense db = {b, 1, SPMM_F32, 0}, dc = {c, 1, SPMM_F32, 0};
	OK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL));
	CHECK(c[0] == 201 && c[1] == 30);
	spmm_epilogue e = {.bias = bias, .bias_type = SPMM_F32, .bias_of_rows = 1, .activation = 1};
	OK(spmm_plan_multiply(plan, 1, 2, &db, 1, &dc, &e));
	CHECK(c[0] == 0 && c[1] == 91);
	/* entries of X·Yᵀ: 1·10+2·20, 1·30+2·40, 3·50+4·60 at (0,0), (0,2), (1,1) */
	float x[] = {1, 2, 3, 4}, y[] = {10, 20, 50, 60, 30, 40}, r[3], scale[] = {1, 2, -1};
	spmm_dense dx = {x, 2, SPMM_F32, 0}, dy = {y, 2, SPMM_F32, 0};
	spmm_sampled to = {.results = r, .type = SPMM_F32};
	OK(spmm_plan_sample(plan, 2, &dx, &dy, &to));
	CHECK(r[0] == 50 && r[1] == 110 && r[2] == 390);
	to.scale = scale, to.scale_type = SPMM_F32;
	OK(spmm_plan_sample(plan, 2, &dx, &dy, &to));
	CHECK(r[0] == 50 && r[1] == 220 && r[2] == -390);
	to.softmax = 1;
	OK(spmm_plan_sample(plan, 2, &dx, &dy, &to));
	CHECK(r[0] == 0 && r[1] == 1 && r[2] == 1);
	dx.ld = 1;
	CHECK(spmm_plan_sample(plan, 2, &dx, &dy, &to) == SPMM_INVALID && strstr(spmm_last_error(), "matrix X"));
	dx.ld = 2;
	CHECK(spmm_plan_sample(plan, 2, &dx, &dy, NULL) == SPMM_INVALID);
	CHECK(spmm_plan_enqueue_sample(plan, 0, 2, &dx, &dy, &to) == SPMM_UNSUPPORTED);
	to.results = NULL;
	CHECK(spmm_plan_sample(plan, 2, &dx, &dy, &to) == SPMM_INVALID);
	float values[] = {2, 3, 4};
	OK(spmm_plan_set_values(plan, 3, values, SPMM_F32));
	OK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL));
	CHECK(c[0] == 302 && c[1] == 40);

	spmm_tensor tb, tc, none = {0};
	OK(spmm_tensor_new(dev, 3, 1, SPMM_F32, 0, &tb));
	OK(spmm_tensor_new(dev, 2, 1, SPMM_F32, 0, &tc));
	OK(spmm_tensor_upload(tb, &db));
	OK(spmm_plan_run(plan, 1, tb, 0, tc, none, 0, 0));
	OK(spmm_tensor_download(tc, &dc));
	CHECK(c[0] == 302 && c[1] == 40);
	spmm_sequence s;
	OK(spmm_sequence_new(dev, &s));
	OK(spmm_sequence_add(s, plan, 1, tb, 1, tc, none, 0, 0));
	for (int i = 0; i < 3; i++)
		OK(spmm_sequence_run(s));
	OK(spmm_tensor_download(tc, &dc));
	CHECK(c[0] == 4 * 302 && c[1] == 4 * 40);
	OK(spmm_sequence_close(s));
	OK(spmm_tensor_close(tb));
	OK(spmm_tensor_close(tc));

	/* what is refused leaves everything as it is */
	CHECK(spmm_plan_multiply(plan, 1, 1, NULL, 0, &dc, NULL) == SPMM_INVALID);
	db.type = SPMM_I32;
	CHECK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL) == SPMM_INVALID && strstr(spmm_last_error(), "matrix B"));
	db.type = SPMM_F32, db.ld = 0;
	CHECK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL) == SPMM_INVALID && strstr(spmm_last_error(), "leading"));
	db.ld = 1;
	CHECK(spmm_plan_multiply(plan, -1, 1, &db, 0, &dc, NULL) == SPMM_INVALID);
	CHECK(spmm_plan_set_values(plan, 2, values, SPMM_F32) == SPMM_INVALID);
	CHECK(spmm_plan_enqueue(plan, 0, 1, 1, &db, 0, &dc, NULL) == SPMM_UNSUPPORTED);
	OK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL));
	CHECK(c[0] == 302);

	char buf[4096];
	size_t size = 1;
	OK(spmm_plan_info(plan, buf, &size));
	CHECK(size > 1 && size < sizeof buf);
	OK(spmm_plan_info(plan, buf, &size));
	CHECK(strstr(buf, "\"nnz\":3") && strlen(buf) + 1 == size);
	OK(spmm_plan_close(plan));
	OK(spmm_plan_close(plan));
	CHECK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL) == SPMM_CLOSED);
}

static void matrices(spmm_device dev)
{
	spmm_plan plan;
	spmm_csr a = matrix();
	a.col_idx = wide, a.col_idx_type = SPMM_I64;
	spmm_options o = {.format = "csr", .transpose = 1, .n = 8};
	OK(spmm_plan_csr(dev, &a, &o, &plan));
	float b[] = {1, 10}, c[3];
	spmm_dense db = {b, 1, SPMM_F32, 0}, dc = {c, 1, SPMM_F32, 0};
	OK(spmm_plan_multiply(plan, 1, 1, &db, 0, &dc, NULL));
	CHECK(c[0] == 1 && c[1] == 30 && c[2] == 2);
	OK(spmm_plan_close(plan));
	wide[1] += 1ll << 32;
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "at most"));
	wide[1] = 2;
	a = matrix();
	idx[0] = 2, idx[1] = 0; /* not sorted */
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_INVALID);
	a.unsorted = 1;
	OK(spmm_plan_csr(dev, &a, NULL, &plan));
	OK(spmm_plan_close(plan));
	CHECK(idx[0] == 2);
	idx[0] = 3;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_INVALID);
	idx[0] = 0, idx[1] = 2;
	a = matrix(), a.nnz = 4;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "entries"));
	a = matrix(), a.rows = 1ll << 31;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_INVALID);
	a = matrix(), a.values = NULL;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_INVALID);
	a = matrix(), a.in_device = 1;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_UNSUPPORTED && strstr(spmm_last_error(), "offsets"));
	a = matrix(), o.quantise = SPMM_F32;
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "quantise"));
	o.quantise = 0, o.split = 3;
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "split 3"));
	o.split = 0, o.from = -1;
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "SPMM_AT"));
	o.from = 0, o.variant = "no";
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_UNSUPPORTED && strstr(spmm_last_error(), "\"no\""));
	o.variant = NULL, o.format = "no";
	CHECK(spmm_plan_csr(dev, &a, &o, &plan) == SPMM_INVALID && strstr(spmm_last_error(), "Format"));
	double d[] = {1, 0, 2, 0, 3, 0};
	spmm_dense dd = {d, 3, SPMM_F64, 0};
	OK(spmm_plan_dense(dev, 2, 3, &dd, 1, NULL, &plan));
	double db64[] = {1, 10, 100}, dc64[2];
	spmm_dense x = {db64, 1, SPMM_F64, 0}, y = {dc64, 1, SPMM_F64, 0};
	OK(spmm_plan_multiply(plan, 1, 1, &x, 0, &y, NULL));
	CHECK(dc64[0] == 201 && dc64[1] == 30);
	OK(spmm_plan_close(plan));
}

/* The devices of a group share a product. */
static void split(spmm_device two)
{
	spmm_csr a = matrix();
	float b[] = {1, 2, 10, 20, 100, 200}, c[4];
	spmm_dense db = {b, 2, SPMM_F32, 0}, dc = {c, 2, SPMM_F32, 0};
	int32_t splits[] = {SPMM_SPLIT_AUTO, SPMM_SPLIT_COLUMNS, SPMM_SPLIT_ROWS};
	int32_t places[] = {SPMM_IN_PLACE, SPMM_REPLICATED, SPMM_IN_COLUMNS, SPMM_IN_ROWS, SPMM_AT + 1};
	for (size_t i = 0; i < sizeof splits / sizeof *splits; i++)
		for (size_t j = 0; j < sizeof places / sizeof *places; j++) {
			spmm_options o = {.split = splits[i], .from = places[j], .n = 2};
			spmm_plan plan;
			OK(spmm_plan_csr(two, &a, &o, &plan));
			OK(spmm_plan_multiply(plan, 2, 1, &db, 0, &dc, NULL));
			CHECK(c[0] == 201 && c[1] == 402 && c[2] == 30 && c[3] == 60);
			OK(spmm_plan_close(plan));
		}
	spmm_options o = {.from = SPMM_AT + 2};
	CHECK(spmm_plan_csr(two, &a, &o, &(spmm_plan){0}) == SPMM_INVALID);
	OK(spmm_device_close(two));
}

static void groups(void)
{
	spmm_device two, each[2], none = {0};
	OK(spmm_device_open("cpu,cpu", &two));
	split(two);
	for (int i = 0; i < 2; i++)
		OK(spmm_device_open("cpu", &each[i]));
	CHECK(spmm_device_join(each, 0, &two) == SPMM_INVALID && strstr(spmm_last_error(), "want 1 or more"));
	CHECK(spmm_device_join(NULL, 2, &two) == SPMM_INVALID);
	CHECK(spmm_device_join(each, 2, NULL) == SPMM_INVALID);
	CHECK(spmm_device_join((spmm_device[]){each[0], each[0]}, 2, &two) == SPMM_INVALID &&
	      strstr(spmm_last_error(), "twice"));
	CHECK(spmm_device_join((spmm_device[]){each[0], none}, 2, &two) == SPMM_CLOSED);
	OK(spmm_device_join(each, 2, &two));
	char buf[4096];
	size_t size = sizeof buf;
	OK(spmm_device_info(two, buf, &size));
	CHECK(strstr(buf, "\"devices\":2"));
	matrices(two);
	matrices(each[1]);
	spmm_csr a = matrix();
	spmm_plan plan;
	OK(spmm_plan_csr(two, &a, NULL, &plan));
	float b[] = {1, 2, 3}, r[3];
	spmm_dense d = {b, 1, SPMM_F32, 0};
	spmm_sampled to = {.results = r, .type = SPMM_F32};
	CHECK(spmm_plan_sample(plan, 1, &d, &d, &to) == SPMM_UNSUPPORTED && strstr(spmm_last_error(), "on one device"));
	split(two);
	CHECK(spmm_plan_csr(each[0], &a, NULL, &(spmm_plan){0}) == SPMM_CLOSED);
	OK(spmm_device_close(each[0]));
}

static sigjmp_buf back;
static void on_segv(int sig) { siglongjmp(back, sig); }

/* Memory that nobody may read. */
static void *nothing(void) { return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void bad_pointers(spmm_device dev)
{
	spmm_csr a = matrix();
	spmm_plan plan;
	a.row_ptr = (void *)16;
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_DEFECT);
	a.row_ptr = nothing();
	CHECK(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_DEFECT);
}

/* Faults of the library are errors, also after the program has installed a handler, which gets those of the program. */
static void faults(spmm_device dev)
{
	bad_pointers(dev);
	CHECK(signal(SIGSEGV, on_segv) != SIG_ERR);
	bad_pointers(dev);
	volatile int *p = nothing();
	if (!sigsetjmp(back, 1))
		exit(*p);
	bad_pointers(dev);
	CHECK(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	bad_pointers(dev);
}

static void in_child(spmm_device dev)
{
	pid_t child = fork();
	if (child == 0) {
		spmm_csr a = matrix();
		spmm_plan plan;
		_exit(spmm_plan_csr(dev, &a, NULL, &plan) == SPMM_FORKED && strstr(spmm_last_error(), "forked") ? 7 : 1);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

int main(void)
{
	CHECK(spmm_abi() == SPMM_ABI);
	CHECK(strcmp(spmm_last_error(), "") == 0);
	spmm_device dev;
	OK(spmm_set("cache_folder", getenv("CACHE")));
	CHECK(spmm_set("colour", "red") == SPMM_INVALID && strstr(spmm_last_error(), "cache_folder"));
	CHECK(spmm_set("cuda_library", NULL) == SPMM_INVALID);
	OK(spmm_set("cuda_library", "/no/libcuda.so"));
	CHECK(spmm_device_open("cuda", &dev) == SPMM_UNAVAILABLE && strstr(spmm_last_error(), "/no/libcuda.so"));
	CHECK(spmm_device_open("cpu:9", &dev) == SPMM_UNAVAILABLE && strstr(spmm_last_error(), "device 9"));
	pthread_t t;
	void *empty;
	CHECK(!pthread_create(&t, NULL, other_thread, &dev) && !pthread_join(t, &empty) && empty);
	OK(spmm_device_open("cpu", &dev));
	products(dev);
	matrices(dev);
	groups();
	faults(dev);
	in_child(dev);
	spmm_cancel();
	products(dev);
	OK(spmm_device_close(dev));
	CHECK(spmm_sequence_new(dev, &(spmm_sequence){0}) == SPMM_CLOSED);
	puts("all passed");
	return 0;
}
