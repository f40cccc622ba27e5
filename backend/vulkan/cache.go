// The pipeline cache: what the driver compiled is kept in the user's cache directory, one file per
// device and driver. It is only a cache: whatever is wrong with the file or the directory, kernels
// are compiled anew.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include <stdlib.h>
#include "native.h"
*/
import "C"

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"unsafe"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/internal/cache"
)

// The file: magic, the data's SHA-256, the data. Drivers check their own header but trust what
// follows it, so a damaged file must not reach them.
const (
	cacheMagic = "spmmvkc1"
	cacheLimit = 256 << 20 // bytes of a file that is worth reading
)

type pipelineCache struct {
	handle C.uint64_t // VkPipelineCache
	file   string     // its name in the cache folder
	loaded int        // bytes that came from the file
}

func (id identity) fileName() string {
	return fmt.Sprintf("vulkan-%04x-%04x-%x-%x.bin", id.vendor, id.device, id.driver, id.uuid)
}

// open makes the cache, from the file if there is one.
func (c *pipelineCache) open(d *device) {
	c.file = d.a.id.fileName()
	data := readCacheFile(c.file)
	if data != nil && c.create(d, data) {
		c.loaded = len(data)
		return
	}
	c.create(d, nil)
}

func (c *pipelineCache) create(d *device, data []byte) bool {
	info := vk.PipelineCacheCreateInfo{SType: vk.StructureTypePipelineCacheCreateInfo}
	if len(data) > 0 {
		mem := C.CBytes(data)
		defer C.free(mem)
		info.InitialDataSize, info.PInitialData = uint(len(data)), mem
	}
	defer info.Free()
	var handle vk.PipelineCache
	if vk.CreatePipelineCache(d.handle, &info, nil, &handle) != vk.Success {
		return false
	}
	c.handle = *(*C.uint64_t)(unsafe.Pointer(&handle))
	return true
}

// close saves what is new and frees the cache.
func (c *pipelineCache) close(d *device) {
	if c.handle == 0 {
		return
	}
	handle := *(*vk.PipelineCache)(unsafe.Pointer(&c.handle))
	if !d.lost {
		if data := cacheData(d, handle); len(data) > c.loaded {
			writeCacheFile(c.file, data)
		}
	}
	vk.DestroyPipelineCache(d.handle, handle, nil)
	c.handle = 0
}

func cacheData(d *device, handle vk.PipelineCache) []byte {
	var n uint
	if vk.GetPipelineCacheData(d.handle, handle, &n, nil) != vk.Success || n == 0 || n > cacheLimit {
		return nil
	}
	data := make([]byte, n)
	if vk.GetPipelineCacheData(d.handle, handle, &n, unsafe.Pointer(&data[0])) != vk.Success {
		return nil
	}
	return data[:n]
}

// readCacheFile returns the data of an undamaged file, else nil.
func readCacheFile(name string) []byte {
	b, err := cache.Read(name, cacheLimit)
	head := len(cacheMagic) + sha256.Size
	if err != nil || len(b) <= head || string(b[:len(cacheMagic)]) != cacheMagic {
		return nil
	}
	if sum := sha256.Sum256(b[head:]); string(sum[:]) != string(b[len(cacheMagic):head]) {
		return nil
	}
	return b[head:]
}

// writeCacheFile leaves either the old file or the new one; without a cache kernels are only slower to load.
func writeCacheFile(name string, data []byte) {
	sum := sha256.Sum256(data)
	_ = cache.Write(name, slices.Concat([]byte(cacheMagic), sum[:], data))
}
