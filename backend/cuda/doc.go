// Package cuda runs kernels on NVIDIA GPUs through the CUDA driver API: gorgonia.org/cu, and the
// calls it lacks in internal/driver.
//
// The backend is built in by the tag cuda, with cgo, on 64-bit Linux; no CUDA toolkit is needed. In a module that
// requires this one:
//
//	eval "$(go run github.com/spmmrun/spmm/backend/cuda/env)"
//	go build -tags cuda ./...
//
// The program then starts on any machine: the driver's library is looked for when the backend is
// first used, and where there is none, Devices says so with backend.ErrUnavailable. Without the tag
// a driver is registered that answers the same and tells how to build it in. The environment
// variable SPMM_CUDA_LIBRARY names another library than libcuda.so.1.
//
// A device loads PTX (backend.CodePTX). Drivers compile PTX for the GPU and keep the result in a
// cache of their own.
package cuda
