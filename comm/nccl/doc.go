// Package nccl exchanges data between NVIDIA GPUs, one for each rank, by NVIDIA's library NCCL. The library is opened
// when New is called, with dlopen: a program needs neither its headers nor the library to be built, and starts on
// machines that have none. Its ranks find each other through a comm.Comm, over MPI say.
//
// libnccl.so.2 is looked for where the dynamic linker looks; SPMM_NCCL_LIBRARY names another file. Python packages
// bring one along: site-packages/nvidia/nccl/lib/libnccl.so.2. NCCL 2.14 or later is needed.
//
// Operations go to a stream of the package's own, ahead of the device's launches, so that they overlap with products;
// waiting for one looks at the library's errors too. Communicators do not block (ncclConfig_t.blocking is 0): the first
// operations between two ranks wait until both have connected, and do so in NCCL's threads. After an error, or when a
// context ends, the communicator is aborted, which lets go of the GPU, and of these threads, even if another rank has
// died or never comes.
package nccl
