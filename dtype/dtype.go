// Package dtype names the number types that matrices, kernels and devices speak of.
package dtype

import "fmt"

// Type is the type of one matrix element.
type Type uint8

// The element types. TF32 is a way of computing, never of storing: its data are F32.
const (
	Invalid Type = iota
	F16          // IEEE 754 binary16
	BF16         // bfloat16: the upper half of a binary32
	F32          // IEEE 754 binary32
	TF32         // binary32 data whose products keep 11 significant bits
	S8           // signed 8-bit integer
	U8           // unsigned 8-bit integer
	S32          // signed 32-bit integer
	U32          // unsigned 32-bit integer
	F64          // IEEE 754 binary64
	E4M3         // 8-bit float of 4 exponent and 3 significand bits, OCP FP8: values of quantised matrices only
)

var names = [...]string{"invalid", "f16", "bf16", "f32", "tf32", "s8", "u8", "s32", "u32", "f64", "e4m3"}
var sizes = [...]int{0, 2, 2, 4, 4, 1, 1, 4, 4, 8, 1}

// String returns the type's name as the command line spells it.
func (t Type) String() string {
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("dtype(%d)", uint8(t))
}

// Size returns the bytes of one stored element.
func (t Type) Size() int {
	if int(t) < len(sizes) {
		return sizes[t]
	}
	return 0
}

// LeastNormal returns the least positive number of a floating-point type that has all its digits; of TF32 and BF16 it
// is that of F32, whose exponents they have.
func (t Type) LeastNormal() float64 {
	switch t {
	case F16:
		return 0x1p-14
	case F64:
		return 0x1p-1022
	}
	return 0x1p-126
}

// Storage returns the type that data computed as t are stored in: F32 for TF32, else t.
func (t Type) Storage() Type {
	if t == TF32 {
		return F32
	}
	return t
}

// Parse is the inverse of String.
func Parse(s string) (Type, error) {
	for i, n := range names {
		if i > 0 && n == s {
			return Type(i), nil
		}
	}
	return Invalid, fmt.Errorf("unknown element type %q (f16, bf16, f32, tf32 or f64)", s)
}
