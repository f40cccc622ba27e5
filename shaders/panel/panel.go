// Package panel is shared by kernels whose formats cut a matrix into panels of V rows that share columns (cvse,
// tiledcsr): variants for Vulkan, WebGPU and the CPU, and the parameter block. The sources that go with it are
// shaders/include/panel*.
//
// Such a format's arrays are, in order: a list of the panels, and of parts of heavy ones (work.go); column numbers;
// values, V for each column, top row first; and a mask with a bit for each value, which tells stored entries from zeros
// that fill a column up. A workgroup computes a block of columns of C for one panel, or part of one; which, it finds
// out in its own way. Parts leave their sums in the workspace, and a second launch of the same kernel (phase 1) adds
// them up in order. Variants that have B in shared memory cut panels otherwise: windows.go and streams.go say what the
// first array is for them.
//
// Structural zeros never touch B. The values that are no entries are multiplied like all others, which
// is right as long as B is finite. An output that is not finite is computed again from the entries alone.
package panel

import "github.com/spmmrun/spmm/shaders/spec"

// Positions of the arguments.
const (
	ArgWork = iota
	ArgCols
	ArgValues
	ArgMask
	ArgB
	ArgBias
	ArgC
)

// Args are the arguments of such a format's program. In part are sums of parts, slot after slot.
var Args = spec.FormatArgs("work u32", "colind u32", "values T", "mask u32", "part f32 written")

// Params is the parameter block that all kernels begin with.
type Params struct {
	Phase       uint32 // 0: panels and parts; 1: sums of heavy panels
	Panels      uint32 // of this phase
	Start       uint32 // its first record in the work list
	Places      uint32 // where work has the words that say which rows panels are of
	Rows, N     uint32
	LDB, LDC    uint32
	Store       uint32 // type of C, and epilogue: spec.Problem.StoreWord
	Alpha, Beta float32
	Cols        uint32 // of A: rows of B
	Width       uint32 // of the grid in x
}

// newParams returns the parameters of a problem with a packed matrix, for a number of panels and a grid of a width.
func newParams(e *spec.Packed, p spec.Problem, panels int, width uint32) Params {
	return Params{
		Panels: uint32(panels), Places: uint32(e.Work.(Work).Places), Rows: uint32(p.M), N: uint32(p.N), LDB: uint32(p.LDB),
		LDC:   uint32(p.LDC),
		Store: p.StoreWord() | p.OrderWord(), Alpha: float32(p.Alpha), Beta: float32(p.Beta), Cols: uint32(p.K), Width: width,
	}
}
