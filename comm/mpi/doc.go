// Package mpi is comm.Comm over MPI. The library is opened when Init is called, with dlopen: a program needs neither
// MPI's headers nor a library to be built, and starts on machines that have none.
//
// Open MPI 4 and 5, MPICH 4 and what shares its ABI (Intel MPI, MVAPICH, Cray MPICH), and libraries with the ABI of
// MPI-5 are known. Which of them is opened depends on the launcher that started the process: a library of another MPI
// would not know of the other ranks, and every process would take itself for the only one. SPMM_MPI_LIBRARY names a
// library in place of the usual ones.
//
// Launcher reports whether the process was started as one of several ranks, from the environment alone.
//
// MPI is given C memory alone (comm.Memory): other buffers are copied. All calls but MPI_Abort come from the one thread
// that initialised MPI: the library need not be thread-safe (MPI_THREAD_FUNNELED). While a call waits, other goroutines
// run. MPICH's communication library replaces handlers of signals that Go needs; they are restored once MPI is
// initialised.
package mpi
