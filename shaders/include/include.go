// Package include holds source text that kernels share: half.cuh, half.glsl and half.wgsl convert
// between element types, fixed.cuh, fixed.glsl and fixed.wgsl do RFX-p's arithmetic in integers,
// addr.glsl steps through buffers of any size, panel* multiply panels of rows that share columns, operands.glsl reads A
// and B, repair.glsl and nonfinite.wgsl compute outputs that are not finite again.
//
// CUDA C++ and GLSL sources include the files by their relative path; WGSL has no includes, so a
// variant puts the text into its template through Unit.Defines.
package include

import _ "embed"

// HalfWGSL is half.wgsl.
//
//go:embed half.wgsl
var HalfWGSL string

// FixedWGSL is fixed.wgsl.
//
//go:embed fixed.wgsl
var FixedWGSL string

// PanelWGSL is panel.wgsl.
//
//go:embed panel.wgsl
var PanelWGSL string

// NonFiniteWGSL is nonfinite.wgsl.
//
//go:embed nonfinite.wgsl
var NonFiniteWGSL string

// Element types as kernels' parameters and defines number them.
const (
	F32 = iota
	F16
	BF16
)
