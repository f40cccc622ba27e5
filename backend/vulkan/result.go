// VkResult as errors.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"fmt"

	vk "github.com/vulkan-go/vulkan"

	"github.com/spmmrun/spmm/backend"
)

// resultNames are those a user may meet.
var resultNames = map[vk.Result]string{
	vk.ErrorOutOfHostMemory:      "VK_ERROR_OUT_OF_HOST_MEMORY",
	vk.ErrorOutOfDeviceMemory:    "VK_ERROR_OUT_OF_DEVICE_MEMORY",
	vk.ErrorInitializationFailed: "VK_ERROR_INITIALIZATION_FAILED",
	vk.ErrorDeviceLost:           "VK_ERROR_DEVICE_LOST",
	vk.ErrorMemoryMapFailed:      "VK_ERROR_MEMORY_MAP_FAILED",
	vk.ErrorLayerNotPresent:      "VK_ERROR_LAYER_NOT_PRESENT",
	vk.ErrorExtensionNotPresent:  "VK_ERROR_EXTENSION_NOT_PRESENT",
	vk.ErrorFeatureNotPresent:    "VK_ERROR_FEATURE_NOT_PRESENT",
	vk.ErrorIncompatibleDriver:   "VK_ERROR_INCOMPATIBLE_DRIVER",
	vk.ErrorTooManyObjects:       "VK_ERROR_TOO_MANY_OBJECTS",
	-13:                          "VK_ERROR_UNKNOWN",
	-1000012000:                  "VK_ERROR_INVALID_SHADER",
	-1000257000:                  "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS",
}

func resultName(r vk.Result) string {
	if name, ok := resultNames[r]; ok {
		return name
	}
	return fmt.Sprintf("VkResult %d", r)
}

// resultError is the error that a failed call means; nil for VK_SUCCESS.
func resultError(r vk.Result, call string) error {
	name := resultName(r)
	switch r {
	case vk.Success:
		return nil
	case vk.ErrorDeviceLost:
		return fmt.Errorf("vulkan: %w (%s: %s); close it and open it again", backend.ErrDeviceLost, call, name)
	case vk.ErrorOutOfHostMemory, vk.ErrorOutOfDeviceMemory, vk.ErrorMemoryMapFailed, vk.ErrorTooManyObjects:
		return fmt.Errorf("vulkan: %w (%s: %s)", backend.ErrOutOfMemory, call, name)
	}
	return fmt.Errorf("vulkan: %s: %s", call, name)
}
