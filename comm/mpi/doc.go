// Package mpi is comm.Comm over MPI. Init opens the library with dlopen. So a program is built without MPI's headers or
// libraries, and starts on machines without MPI.
//
// Open MPI 4 and 5, MPICH 4 and what shares its ABI (Intel MPI, MVAPICH, Cray MPICH), and libraries with the ABI of
// MPI-5 are known. Which of them is opened depends on the launcher that started the process: a library of another MPI
// would not know of the other ranks, and every process would take itself for the only one. SPMM_MPI_LIBRARY names a
// library in place of the usual ones.
//
// Launcher reports whether the process was started as one of several ranks. It looks only at the environment.
//
// MPI gets only C memory (comm.Memory); other buffers are copied. One thread, which initialised MPI, makes all calls
// but MPI_Abort, so the library need not be thread-safe (MPI_THREAD_FUNNELED). While a call waits, other goroutines
// run. MPICH's communication library replaces handlers of signals that Go needs; they are restored once MPI is
// initialised.
package mpi
