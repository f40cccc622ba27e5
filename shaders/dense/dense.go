// Package dense copies, transposes and converts dense matrices on a device.
package dense

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Layout says how a dense matrix lies in a buffer.
type Layout struct {
	Type     dtype.Type // F16, BF16 or F32
	LD       int        // elements from one row (column, if ColMajor) to the next
	ColMajor bool
}

// Op is dst = Alpha·src + Beta·dst for matrices of Rows×Cols. dst is not read where Beta is 0.
type Op struct {
	Rows, Cols  int
	Src, Dst    Layout
	Alpha, Beta float32
}

// Kernel is the table of the dense kernel.
var Kernel = &spec.Kernel{
	Name: "dense",
	Args: []spec.Arg{
		{Name: "src", Elem: "u32", ReadOnly: true},
		{Name: "dst", Elem: "u32"},
	},
}

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) {
	for _, v := range Kernel.Variants {
		if v.Met(caps) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("dense copy kernel: no %v variant that the device can run: %w", caps.Code, backend.ErrUnsupported)
}

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	return spec.Launch{}, fmt.Errorf("dense copy kernel %s: %w", v.Name, backend.ErrUnsupported)
}
