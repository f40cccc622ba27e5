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
// # Contexts, streams and memory of the program's own
//
// A device is open on the GPU's primary context, or with OpenContext on one that the program has made. Its launches and
// copies go to a non-blocking stream of its own; spmm.Device.UseStream gives it another, by its handle, and
// spmm.TensorOver makes tensors of device memory of that context. Handles and addresses are integers: of
// gorgonia.org/cu's types, ContextOf and StreamOf return the handle (in builds with the tag), and DevicePtr.Uintptr the
// address; in C they are the pointers' values.
//
// # Copies
//
// Page-locked host memory, the library's (spmm.NewPinned) or the program's own, is copied by the GPU itself. Ordinary
// memory goes through two page-locked blocks of 4 MiB.
//
// # PTX
//
// A device loads PTX (backend.CodePTX). Drivers compile PTX for the GPU and keep the result in a
// cache of their own. Goroutines that load different code compile at once, and launches go on meanwhile. That needs a
// driver for CUDA 12.0 or later; older ones are refused with backend.ErrUnavailable.
package cuda
