// Package nccl exchanges data between NVIDIA GPUs, one for each rank, by NVIDIA's library NCCL. New opens the library
// with dlopen. So a program is built without NCCL's headers or library, and starts on machines without it. Ranks find
// each other through a comm.Comm, for example over MPI.
//
// The dynamic linker finds libnccl.so.2, unless SPMM_NCCL_LIBRARY names another file. Python packages contain one:
// site-packages/nvidia/nccl/lib/libnccl.so.2. NCCL 2.14 or later is needed.
//
// Operations go to a stream of their own, whose priority is higher than that of the device's launches, so that they
// overlap with products. Waiting for an operation also checks for errors of the library. Communicators do not block
// (ncclConfig_t.blocking is 0): the first operations between two ranks wait until both have connected, and do so in
// NCCL's threads. After an error, or when a context ends, the communicator is aborted, which lets go of the GPU, and of
// these threads, even if another rank has died or never comes.
package nccl
