/* What entry.c and the Go code share. */
#ifndef SPMM_ENTRY_H
#define SPMM_ENTRY_H

#include "spmm.h"

/* Keeps the message of the thread's last error. */
void spmm_keep_error(const char *text, size_t n);
/* Sees to it that faults of Go's code reach Go, whichever handlers the program has installed since. */
void spmm_guard(void);

#endif
