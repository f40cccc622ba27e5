// Package vulkan runs kernels on any Vulkan 1.2 device that offers buffer device addresses, which is
// every desktop GPU's driver of the last years and Mesa's CPU driver.
//
// Kernels are SPIR-V modules whose buffers are 64-bit addresses in push constants; there are no
// descriptor sets, so no limit on a buffer but memory. Features are enabled exactly where the device
// has them: 8- and 16-bit types, the Vulkan memory model, chosen subgroup sizes, cooperative matrices.
//
// The binding is github.com/vulkan-go/vulkan. Its headers are of Vulkan 1.1, and its calls that take slices of structs
// may free the C copy while C reads it; what it lacks is here: the loader opened by its run-time name, structures of
// later versions as plain Go (structs.go), and other code in C (native.c). Without cgo, or on systems other than 64-bit
// Linux, the driver says that it is not available.
//
// Environment: SPMM_VALIDATE=1 turns the Khronos validation layer on; SPMM_CACHE names the folder of the
// pipeline cache.
package vulkan
