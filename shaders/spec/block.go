// Building a parameter block, and reading one in a Go kernel.

package spec

import (
	"encoding/binary"
	"math"
)

// Block is a parameter block under construction: values in the order of Program.Params.
type Block []byte

// U appends a u32.
func (b Block) U(v ...uint32) Block {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// F appends an f32.
func (b Block) F(v ...float32) Block {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// ParamU and ParamF read field i of a block.
func ParamU(p []byte, i int) uint32  { return binary.LittleEndian.Uint32(p[4*i:]) }
func ParamF(p []byte, i int) float32 { return math.Float32frombits(ParamU(p, i)) }
