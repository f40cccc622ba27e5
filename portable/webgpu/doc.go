// Package webgpu is the backend for WGSL kernels, on Vulkan or OpenGL through wgpu-native 0.17, which
// github.com/rajveermalviya/go-webgpu links in. It needs no matrix unit. It builds on linux/amd64 with cgo;
// elsewhere the driver says that it is not available.
//
// wgpu-native ends the process on many mistakes, on a lost device and where OpenGL has no display; the binding's
// callbacks do not survive a garbage collection. So this package checks what it hands over and makes every call
// through its own C code (native.c), which collects the errors that wgpu reports and stops its panics (guard.c).
// Of the binding it uses the library and the constants. Its C headers cannot be included from here: abi.h has the
// declarations that are needed, and a test holds them against the binding's.
package webgpu

import "github.com/spmmrun/spmm/backend"

func init() { backend.Register(Driver{}) }

// Driver lists the adapters that wgpu finds.
type Driver struct{}

// Name is "webgpu".
func (Driver) Name() string { return "webgpu" }
