// Package webgpu is the backend for WGSL kernels, on Vulkan, Metal, Direct3D 12 or OpenGL through
// wgpu-native 0.17, which github.com/rajveermalviya/go-webgpu links in. It needs no matrix unit.
//
// wgpu-native ends the process on many mistakes and on a lost device. So this package checks what it hands over,
// makes every call through its own C code (native.c), which collects the errors that wgpu reports and stops its
// panics (guard.c), and never uses the binding's own calls but to list adapters. The binding's declarations in
// C cannot be included from here: abi.h has those that are needed, and a test holds them against the binding's.
package webgpu

import "github.com/spmmrun/spmm/backend"

func init() { backend.Register(Driver{}) }

// Driver lists the adapters that wgpu finds.
type Driver struct{}

// Name is "webgpu".
func (Driver) Name() string { return "webgpu" }
