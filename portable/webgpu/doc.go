// Package webgpu is the backend for WGSL kernels. It needs no matrix unit. Built with cgo for linux/amd64 it runs on
// Vulkan or OpenGL through wgpu-native 0.17, which github.com/rajveermalviya/go-webgpu links in; built for js/wasm it
// runs in a browser's page or worker. In other builds the driver says that it is not available.
//
// With the tag webgpu it is built for windows/amd64, too, on Direct3D 12 or Vulkan. That compiles and links, and has
// run nowhere yet; panics of wgpu-native (a lost device) end the process there. The binding has a library for macOS,
// which is not used: abi.h's weak functions need another way to be linked there. It has none for linux/arm64.
//
// Launches, buffers, kernels and their caches are the same in both. Below them is the type gpu: native.go, which calls
// WebGPU's steps put together in C (native.c), and browser.go, which calls them in JavaScript (browser.js).
//
// wgpu-native ends the process on many mistakes, on a lost device and where OpenGL has no display; the binding's
// callbacks do not survive a garbage collection. So this package checks what it hands over and makes every call
// through its own C code, which collects the errors that wgpu reports and stops its panics (guard.c).
// Of the binding it uses the library and the constants. Its C headers cannot be included from here: abi.h has the
// declarations that are needed, and a test holds them against the binding's.
//
// A browser shows one adapter and may keep its name to itself. It tells a device's time in steps of 0.1 ms, so runs of
// less than a millisecond have none.
package webgpu

import "github.com/spmmrun/spmm/backend"

func init() { backend.Register(Driver{}) }

// Driver lists the adapters that wgpu finds.
type Driver struct{}

// Name is "webgpu".
func (Driver) Name() string { return "webgpu" }
