//go:build cuda && cgo && linux && (amd64 || arm64)

// Memory: page-locked on the host, copies of lines, and what lies at an address.

package driver

/*
#include "cuda.h"

// What lies at an address; ordinal is -1 where the driver does not tell.
typedef struct {
	CUmemorytype type;
	unsigned int managed;
	int ordinal;
	CUcontext ctx; // NULL: of no context in particular
	CUdeviceptr start;
	size_t size;
} spmm_memory;

static CUresult memory_at(CUdeviceptr p, spmm_memory *m)
{
	CUresult r = cuPointerGetAttribute(&m->type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	if (r)
		return r;
	// Memory of pools and of mappings has no context, which some drivers call an error.
	if (cuPointerGetAttribute(&m->ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p))
		m->ctx = NULL;
	if (cuPointerGetAttribute(&m->managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p))
		m->managed = 0;
	if (cuPointerGetAttribute(&m->ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p))
		m->ordinal = -1;
	r = cuPointerGetAttribute(&m->start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p);
	return r ? r : cuPointerGetAttribute(&m->size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p);
}

static int on_host(const void *p)
{
	CUmemorytype type;
	return !cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p) &&
		type == CU_MEMORYTYPE_HOST;
}

static CUresult lines_in(CUdeviceptr dst, size_t pitch, const void *host, size_t host_pitch, size_t width, size_t n,
	CUstream s)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = host_pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst, .dstPitch = pitch,
		.WidthInBytes = width, .Height = n,
	};
	return cuMemcpy2DAsync(&c, s);
}

static CUresult lines_out(void *host, size_t host_pitch, CUdeviceptr src, size_t pitch, size_t width, size_t n,
	CUstream s)
{
	CUDA_MEMCPY2D c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src, .srcPitch = pitch,
		.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = host, .dstPitch = host_pitch,
		.WidthInBytes = width, .Height = n,
	};
	return cuMemcpy2DAsync(&c, s);
}

static CUresult peer(CUdeviceptr dst, CUcontext dst_ctx, size_t pitch, CUdeviceptr src, CUcontext src_ctx,
	size_t src_pitch, size_t width, size_t n, CUstream s)
{
	if (n == 1)
		return cuMemcpyPeerAsync(dst, dst_ctx, src, src_ctx, width, s);
	CUDA_MEMCPY3D_PEER c = {
		.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = src, .srcContext = src_ctx, .srcPitch = src_pitch, .srcHeight = n,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = dst, .dstContext = dst_ctx, .dstPitch = pitch, .dstHeight = n,
		.WidthInBytes = width, .Height = n, .Depth = 1,
	};
	return cuMemcpy3DPeerAsync(&c, s);
}
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// HostAlloc returns page-locked host memory, which the device reads and writes at full speed. It
// is not garbage collected: free it with cu.MemFreeHost.
func HostAlloc(bytes int) ([]byte, error) {
	var p unsafe.Pointer
	if err := check(C.cuMemHostAlloc(&p, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(p), bytes), nil
}

// HostRegister page-locks memory of the host that is the program's, and not garbage collected, until HostUnregister.
func HostRegister(p []byte) error {
	return check(C.cuMemHostRegister(unsafe.Pointer(&p[0]), C.size_t(len(p)), C.CU_MEMHOSTREGISTER_PORTABLE))
}

// HostUnregister undoes HostRegister for the same memory.
func HostUnregister(p []byte) error { return check(C.cuMemHostUnregister(unsafe.Pointer(&p[0]))) }

// PageLocked reports whether p, which has at least one byte, is page-locked memory, whoever made it.
func PageLocked(p []byte) bool {
	return C.on_host(unsafe.Pointer(&p[0])) != 0 && C.on_host(unsafe.Pointer(&p[len(p)-1])) != 0
}

// Memory describes the allocation at an address.
type Memory struct {
	OnDevice bool         // else page-locked on the host
	Device   int          // the device's number, -1 if the driver does not tell
	Context  uintptr      // 0: of no context in particular
	Start    cu.DevicePtr // of the allocation
	Size     int64        // of the allocation, in bytes
}

// MemoryAt tells what lies at an address; InvalidValue: nothing that CUDA knows.
func MemoryAt(p cu.DevicePtr) (Memory, error) {
	var m C.spmm_memory
	if err := check(C.memory_at(C.CUdeviceptr(p), &m)); err != nil {
		return Memory{}, err
	}
	return Memory{
		OnDevice: m._type == C.CU_MEMORYTYPE_DEVICE || m.managed != 0, Device: int(m.ordinal),
		Context: uintptr(unsafe.Pointer(m.ctx)),
		Start:   cu.DevicePtr(m.start), Size: int64(m.size),
	}, nil
}

// CopyLinesIn copies n lines of width bytes from p, hostPitch bytes apart, to dst, pitch bytes apart, as part of a
// stream.
func CopyLinesIn(dst cu.DevicePtr, pitch int64, p unsafe.Pointer, hostPitch, width int64, n int, s cu.Stream) error {
	return check(C.lines_in(C.CUdeviceptr(dst), C.size_t(pitch), p, C.size_t(hostPitch), C.size_t(width), C.size_t(n),
		stream(s)))
}

// CopyLinesOut copies them back.
func CopyLinesOut(p unsafe.Pointer, hostPitch int64, src cu.DevicePtr, pitch, width int64, n int, s cu.Stream) error {
	return check(C.lines_out(p, C.size_t(hostPitch), C.CUdeviceptr(src), C.size_t(pitch), C.size_t(width), C.size_t(n),
		stream(s)))
}

// CopyPeer copies n lines of width bytes from one context's memory to another's, or to the same one's, as part of a
// stream.
func CopyPeer(dst cu.DevicePtr, dstCtx cu.CUContext, pitch int64, src cu.DevicePtr, srcCtx cu.CUContext, srcPitch,
	width int64, n int, s cu.Stream) error {
	return check(C.peer(C.CUdeviceptr(dst), *(*C.CUcontext)(unsafe.Pointer(&dstCtx)), C.size_t(pitch),
		C.CUdeviceptr(src), *(*C.CUcontext)(unsafe.Pointer(&srcCtx)), C.size_t(srcPitch), C.size_t(width), C.size_t(n),
		stream(s)))
}

func stream(s cu.Stream) C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s)) }
