// The part of webgpu.h and wgpu.h (wgpu-native 0.17) that this package calls, as it lies in memory: the
// binding's own headers are out of reach of other packages. All handles are opaque pointers.
//
// The functions are weak because cgo links every package once on its own, without the binding's library; in
// the program they are the library's.

#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct { const void *next; int type; } wgChain;

enum { wgShaderWGSL = 6, wgInstance = 0x60000006 };  // chain types
enum { wgAPIOpenGL = 1 << 5 };                        // instance APIs
enum { wgErrorNone, wgErrorValidation, wgErrorOutOfMemory, wgErrorDeviceLost = 5 };
enum { wgMapRead = 1, wgMapOK = 0, wgMapLost = 3 };   // map mode, status
enum { wgStageCompute = 4 };
enum { wgBindUniform = 1, wgBindStorage = 2, wgBindReadOnly = 3 };
enum { wgUseMapRead = 1, wgUseCopySrc = 4, wgUseCopyDst = 8, wgUseUniform = 64, wgUseStorage = 128,
	wgUseResolve = 512 };
enum { wgFeatureTimestamps = 3, wgQueryTimestamp = 2 };

typedef struct {
	uint32_t maxTextureDimension1D, maxTextureDimension2D, maxTextureDimension3D, maxTextureArrayLayers;
	uint32_t maxBindGroups, maxBindingsPerBindGroup;
	uint32_t maxDynamicUniformBuffers, maxDynamicStorageBuffers;
	uint32_t maxSampledTextures, maxSamplers, maxStorageBuffers, maxStorageTextures, maxUniformBuffers;
	uint64_t maxUniformBufferBindingSize, maxStorageBufferBindingSize;
	uint32_t minUniformBufferOffsetAlignment, minStorageBufferOffsetAlignment, maxVertexBuffers;
	uint64_t maxBufferSize;
	uint32_t maxVertexAttributes, maxVertexBufferArrayStride;
	uint32_t maxInterStageShaderComponents, maxInterStageShaderVariables;
	uint32_t maxColorAttachments, maxColorAttachmentBytesPerSample;
	uint32_t maxWorkgroupStorage, maxInvocations, maxWorkgroupX, maxWorkgroupY, maxWorkgroupZ, maxWorkgroups;
} wgLimits;

typedef struct { const void *next; wgLimits limits; } wgChainedLimits;

typedef void wgErrorCallback(int type, const char *text, void *user);
typedef void wgLostCallback(int reason, const char *text, void *user);
typedef void wgDeviceCallback(int status, void *device, const char *text, void *user);
typedef void wgMapCallback(int status, void *user);

typedef struct {
	const void *next; const char *label;
	size_t features; const int *feature;
	const wgChainedLimits *limits;
	struct { const void *next; const char *label; } queue;
	wgLostCallback *lost; void *lostUser;
} wgDeviceDescriptor;

typedef struct { const void *next; const char *label; uint32_t usage; uint64_t size; bool mapped; } wgBufferDescriptor;
typedef struct { wgChain chain; const char *code; } wgWGSL;
typedef struct { const void *next; const char *label; size_t hints; const void *hint; } wgModuleDescriptor;

typedef struct {
	const void *next; uint32_t binding; uint32_t visibility;
	struct { const void *next; int type; bool dynamic; uint64_t least; } buffer;
	struct { const void *next; int type; } sampler;
	struct { const void *next; int sample, dimension; bool multi; } texture;
	struct { const void *next; int access, format, dimension; } storage;
} wgLayoutEntry;
typedef struct {
    const void *next; const char *label; size_t entries; const wgLayoutEntry *entry;
} wgGroupLayoutDescriptor;
typedef struct { const void *next; const char *label; size_t groups; void *const *group; } wgPipelineLayoutDescriptor;
typedef struct {
	const void *next; const char *label; void *layout;
	struct { const void *next; void *module; const char *entry; size_t constants; const void *constant; } compute;
} wgPipelineDescriptor;

typedef struct {
    const void *next; uint32_t binding; void *buffer; uint64_t offset, size; void *sampler, *view;
} wgGroupEntry;
typedef struct {
    const void *next; const char *label; void *layout; size_t entries; const wgGroupEntry *entry;
} wgGroupDescriptor;
typedef struct {
    const void *next; const char *label; int type; uint32_t count; const void *statistic;
    size_t statistics;
} wgQueryDescriptor;

typedef struct { wgChain chain; uint32_t apis; int dx12Compiler; const char *dxil, *dxc; } wgInstanceExtras;
typedef struct { const void *next; } wgInstanceDescriptor;
typedef struct { const void *next; uint32_t apis; } wgEnumerateOptions;
typedef struct {
	void *next; uint32_t vendorID; const char *vendorName, *architecture; uint32_t deviceID;
	const char *name, *driver; int type, api;
} wgAdapterProperties;

#ifndef WG_TYPES_ONLY
#define WG extern __attribute__((weak))
WG void *wgpuCreateInstance(const wgInstanceDescriptor *d);
WG void wgpuInstanceRelease(void *instance);
WG size_t wgpuInstanceEnumerateAdapters(void *instance, const wgEnumerateOptions *o, void **adapters);
WG void wgpuAdapterGetProperties(void *adapter, wgAdapterProperties *p);
WG void wgpuAdapterRelease(void *adapter);
WG bool wgpuAdapterGetLimits(void *adapter, wgChainedLimits *limits);
WG bool wgpuAdapterHasFeature(void *adapter, int feature);
WG void wgpuAdapterRequestDevice(void *adapter, const wgDeviceDescriptor *d, wgDeviceCallback *cb, void *user);
WG void wgpuDeviceSetUncapturedErrorCallback(void *device, wgErrorCallback *cb, void *user);
WG void *wgpuDeviceGetQueue(void *device);
WG bool wgpuDevicePoll(void *device, bool wait, const void *index);
WG void wgpuDeviceRelease(void *device);
WG void *wgpuDeviceCreateBuffer(void *device, const wgBufferDescriptor *d);
WG void *wgpuDeviceCreateShaderModule(void *device, const wgModuleDescriptor *d);
WG void *wgpuDeviceCreateBindGroupLayout(void *device, const wgGroupLayoutDescriptor *d);
WG void *wgpuDeviceCreatePipelineLayout(void *device, const wgPipelineLayoutDescriptor *d);
WG void *wgpuDeviceCreateComputePipeline(void *device, const wgPipelineDescriptor *d);
WG void *wgpuDeviceCreateBindGroup(void *device, const wgGroupDescriptor *d);
WG void *wgpuDeviceCreateQuerySet(void *device, const wgQueryDescriptor *d);
WG void *wgpuDeviceCreateCommandEncoder(void *device, const void *d);
WG void wgpuBufferDestroy(void *buffer);
WG void wgpuBufferRelease(void *buffer);
WG void wgpuBufferMapAsync(void *buffer, uint32_t mode, size_t off, size_t size, wgMapCallback *cb, void *user);
WG const void *wgpuBufferGetConstMappedRange(void *buffer, size_t off, size_t size);
WG void wgpuBufferUnmap(void *buffer);
WG void wgpuShaderModuleRelease(void *module);
WG void wgpuBindGroupLayoutRelease(void *layout);
WG void wgpuPipelineLayoutRelease(void *layout);
WG void wgpuComputePipelineRelease(void *pipeline);
WG void wgpuBindGroupRelease(void *group);
WG void wgpuQuerySetRelease(void *set);
WG void wgpuQueueRelease(void *queue);
WG void wgpuQueueWriteBuffer(void *queue, void *buffer, uint64_t off, const void *data, size_t size);
WG void wgpuQueueSubmit(void *queue, size_t n, void *const *commands);
WG void *wgpuCommandEncoderBeginComputePass(void *encoder, const void *d);
WG void wgpuCommandEncoderCopyBufferToBuffer(void *encoder, void *src, uint64_t so, void *dst, uint64_t d0,
	uint64_t size);
WG void wgpuCommandEncoderWriteTimestamp(void *encoder, void *set, uint32_t index);
WG void wgpuCommandEncoderResolveQuerySet(void *encoder, void *set, uint32_t first, uint32_t n, void *dst,
	uint64_t off);
WG void *wgpuCommandEncoderFinish(void *encoder, const void *d);
WG void wgpuCommandEncoderRelease(void *encoder);
WG void wgpuCommandBufferRelease(void *buffer);
WG void wgpuComputePassEncoderSetPipeline(void *pass, void *pipeline);
WG void wgpuComputePassEncoderSetBindGroup(void *pass, uint32_t index, void *group, size_t n, const uint32_t *offsets);
WG void wgpuComputePassEncoderDispatchWorkgroups(void *pass, uint32_t x, uint32_t y, uint32_t z);
WG void wgpuComputePassEncoderEnd(void *pass);
WG void wgpuComputePassEncoderRelease(void *pass);
#undef WG
#endif
