// What the Go side calls: combinations of wgpu-native's steps that cannot end the process. Errors that wgpu reports by
// callback, and its panics, are kept in the device until the Go side takes them.

#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WG_OK, WG_REFUSED, WG_NO_MEMORY, WG_LOST };
enum { WG_MAPPING = -1 };

// wg_device is a device, what it comes from, its queue, and what is needed to time a submission.
typedef struct {
	uint32_t apis; // of the instance
	void *instance, *adapter, *device, *queue;
	void *queries, *resolved, *stamps; // NULL without timestamps
	int error;                         // WG_*: the first since the Go side looked
	int mapped;                        // how the mapping in progress ended; WG_MAPPING: it has not
	bool running;                      // what wg_run submitted is not known to be done
	unsigned looks;                    // at it
	bool dead;                         // lost, or in an unknown state after a panic: no call is made any more
	char text[2048];

	// Limits, as opened.
	uint64_t maxBuffer, maxBinding, maxUniform;
	uint32_t uniformAlign, maxStorage, maxShared, maxInvocations, maxLocal[3], maxGroups;
} wg_device;

typedef struct { void *layout, *pipelineLayout, *pipeline; } wg_kernel;

// wg_launch is one dispatch; offset is that of its parameters, used if params is set.
typedef struct {
	void *pipeline, *group;
	uint32_t params, offset, groups[3];
} wg_launch;

// wg_stamps are a submission's device timestamps in ticks of unknown length, and the host's clock around it.
typedef struct { uint64_t begin, end, hostBegin, hostEnd; } wg_stamps;

// wg_adapter is a GPU as one API shows it; type and api are the binding's AdapterType and BackendType.
typedef struct {
	uint32_t vendor;
	int type, api;
	char name[256], driver[256];
} wg_adapter;

bool wg_linked(void);
bool wg_display(void);
size_t wg_adapters(wg_device *errors, uint32_t apis, wg_adapter *list, size_t max);
void wg_open(wg_device *d, uint32_t apis, size_t index); // in wg_adapters' list
void wg_close(wg_device *d);
void *wg_buffer(wg_device *d, uint32_t usage, uint64_t size);
void wg_buffer_free(wg_device *d, void *buffer);
void wg_write(wg_device *d, void *buffer, uint64_t off, const void *data, size_t size);
void wg_flush(wg_device *d);
void wg_read(wg_device *d, void *buffer, uint64_t off, void *staging, void *data, size_t size);
void wg_kernel_make(wg_device *d, wg_kernel *k, const char *code, const char *entry, uint32_t args, uint32_t readonly,
	uint32_t paramBytes);
void wg_kernel_free(wg_device *d, wg_kernel *k);
void *wg_group(wg_device *d, const wg_kernel *k, void *const *buffers, uint32_t args, void *params,
	uint32_t paramBytes);
void wg_group_free(wg_device *d, void *group);

// wg_run submits launches; wg_wait waits for them, `timeout` nanoseconds at most, and returns whether they are still
// running. The stamps are there when they are not.
void wg_run(wg_device *d, const wg_launch *launches, size_t n, wg_stamps *stamps);
bool wg_wait(wg_device *d, wg_stamps *stamps, uint64_t most);
