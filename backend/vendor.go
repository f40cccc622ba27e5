// Names of vendors.

package backend

import "fmt"

// VendorName returns the name of the vendor with a PCI or Khronos number, for Info.Vendor. It is the number itself for
// an unknown vendor.
func VendorName(id uint32) string {
	names := map[uint32]string{
		0x1002: "AMD", 0x1010: "Imagination", 0x106b: "Apple", 0x10de: "NVIDIA", 0x13b5: "Arm",
		0x5143: "Qualcomm", 0x8086: "Intel", 0x10005: "Mesa",
	}
	if n, ok := names[id]; ok {
		return n
	}
	return fmt.Sprintf("0x%04x", id)
}
