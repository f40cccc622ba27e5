// Package faketest tests backend/cuda on machines without a GPU, against a stand-in for libcuda
// (testdata/libcuda.c) that the tests compile and load through SPMM_CUDA_LIBRARY. The tests of
// backend/cuda itself use the machine's own driver.
package faketest
