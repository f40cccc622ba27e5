// Package driver reaches NVIDIA's CUDA driver without linking to it, and adds the calls that
// gorgonia.org/cu lacks.
//
// gorgonia.org/cu includes cuda.h and links -lcuda. Here both are package toolkit's: a header of the
// project's own and an empty libcuda.a. Every cu* function is a forwarder (zforward.c) that finds the real
// one with dlsym when it is first called. So a program built with the tag cuda starts on any machine, and
// learns from Open whether there is a driver.
//
// The environment variable SPMM_CUDA_LIBRARY names another library to load instead of
// libcuda.so.1.
package driver

//go:generate go run ../forwardgen ../toolkit/cuda.h zforward.c
