// What a SPIR-V module says it needs, held against what the device has enabled: drivers are free to
// crash on a module that uses more.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

const (
	spirvMagic   = 0x07230203
	spirvHeader  = 5 // words
	opEntryPoint = 15
	opCapability = 17
	opFuncEnd    = 56
	glCompute    = 5 // execution model
)

// checkModule looks at the header, the capabilities and the entry point.
func (d *device) checkModule(code []uint32, entry string) error {
	if len(code) < spirvHeader || code[0] != spirvMagic {
		return errors.New("not a SPIR-V module")
	}
	if v := code[1]; v > 0x10500 && !(d.a.api >= version13 && v <= 0x10600) {
		return fmt.Errorf("SPIR-V %d.%d is newer than Vulkan %s takes: %w", v>>16, v>>8&0xff, versionString(d.a.api),
			backend.ErrUnsupported)
	}
	found, last := false, uint32(0)
	for i := spirvHeader; i < len(code); {
		op, n := code[i]&0xffff, int(code[i]>>16)
		if n == 0 || i+n > len(code) {
			return errors.New("truncated SPIR-V module")
		}
		if op == opCapability && n == 2 {
			switch name, ok := d.features.allows(code[i+1]); {
			case !ok && name == "":
				return fmt.Errorf("%w: it needs SPIR-V capability %d, which this backend does not know", backend.ErrCompile, code[i+1])
			case !ok:
				return fmt.Errorf("needs %s: %w", name, backend.ErrUnsupported)
			}
		}
		if op == opEntryPoint && n > 3 && code[i+1] == glCompute && literal(code[i+3:i+n]) == entry {
			found = true
		}
		i += n
		last = op
	}
	if last != opFuncEnd {
		return errors.New("truncated SPIR-V module")
	}
	if !found {
		return fmt.Errorf("no compute entry point %q", entry)
	}
	return nil
}

// literal decodes a string of an instruction: bytes from the lowest of each word, up to a zero.
func literal(words []uint32) string {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return cString(b)
}

// allows reports whether a SPIR-V capability is enabled, and its name; "" for one that no kernel has needed yet.
func (f *features) allows(capability uint32) (string, bool) {
	on := func(b bool32) bool { return b != 0 }
	switch capability {
	case 0, 1: // Matrix, Shader
		return "", true
	case 9:
		return "Float16", on(f.v12.shaderFloat16)
	case 10:
		return "Float64", on(f.base.shaderFloat64)
	case 11:
		return "Int64", on(f.base.shaderInt64)
	case 22:
		return "Int16", on(f.base.shaderInt16)
	case 39:
		return "Int8", on(f.v12.shaderInt8)
	case 61, 62, 63, 64, 65, 66, 67, 68: // GroupNonUniform…: the driver tells by operation, all desktop ones have them
		return "", true
	case 4428:
		return "WorkgroupMemoryExplicitLayout", on(f.layouts.workgroupMemoryExplicitLayout)
	case 4429:
		return "WorkgroupMemoryExplicitLayout8BitAccess", on(f.layouts.workgroupMemoryExplicitLayout8BitAccess)
	case 4430:
		return "WorkgroupMemoryExplicitLayout16BitAccess", on(f.layouts.workgroupMemoryExplicitLayout16BitAccess)
	case 4433:
		return "StorageBuffer16BitAccess", on(f.v11.storageBuffer16BitAccess)
	case 4448:
		return "StorageBuffer8BitAccess", on(f.v12.storageBuffer8BitAccess)
	case 5116:
		return "BFloat16TypeKHR", on(f.bf16.shaderBFloat16Type)
	case 5118:
		return "BFloat16CooperativeMatrixKHR", on(f.bf16.shaderBFloat16CooperativeMatrix)
	case 5345:
		return "VulkanMemoryModel", on(f.v12.vulkanMemoryModel)
	case 5346:
		return "VulkanMemoryModelDeviceScope", on(f.v12.vulkanMemoryModelDeviceScope)
	case 5347:
		return "PhysicalStorageBufferAddresses", on(f.v12.bufferDeviceAddress)
	case 6016, 6017, 6018, 6019:
		return "DotProduct", f.dotProducts()
	case 6022:
		return "CooperativeMatrixKHR", on(f.matrix.cooperativeMatrix)
	}
	return "", false
}
