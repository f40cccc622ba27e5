// Kernels whose workgroups take a list of entries in passes.

package spec

// EntryPasses returns how many passes a workgroup has, each of that many entries. Passes follow each other in the list,
// so that L1 keeps rows of Y from one to the next: up to 16, where at least 4096 workgroups remain. Measured on an H200
// (docs/history/sddmm.md).
func EntryPasses(pass, entries int64) int64 {
	const most, workgroups = 16, 4096
	return min(max(1, entries/(pass*workgroups)), most)
}
