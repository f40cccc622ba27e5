// NCCL's functions, found when the library is opened: no header and no library of NCCL is needed to build this.
#ifndef SPMM_NCCL_SHIM_H
#define SPMM_NCCL_SHIM_H

#include <stddef.h>
#include <stdint.h>

enum { SN_ID = 128 };                   // bytes of an identifier
enum { SN_OK = 0, SN_IN_PROGRESS = 7 }; // of ncclResult_t

// sn_open loads a library and finds its functions: 0, or 1 and why in error.
int sn_open(const char *path, char *error, int length);
int sn_version(void); // 22703 is 2.27.3; 0 if it does not tell
void sn_error(int code, char *text, int length);

int sn_id(char *id);
// sn_init begins to meet the other ranks: it is done when sn_async_error's code is no longer SN_IN_PROGRESS. NCCL
// writes the communicator to comm now, and again when it is done. Nor do the communicator's operations block.
int sn_init(void **comm, int size, const char *id, int rank);
int sn_async_error(void *comm, int *code);
int sn_destroy(void *comm);
int sn_abort(void *comm);

// Addresses on the device and streams are numbers here: Go takes what looks like a pointer for one.
typedef uintptr_t sn_address;

// sn_exchange sends and receives bytes, a part for each rank: counts of 0 are left out.
int sn_exchange(void *comm, int size, sn_address send, const size_t *sent_at, const size_t *sent,
                sn_address recv, const size_t *received_at, const size_t *received, sn_address stream);
// sn_gather has every rank receive what each sends.
int sn_gather(void *comm, int size, int rank, sn_address send, sn_address recv, const size_t *at, const size_t *count,
        sn_address stream);

#endif
