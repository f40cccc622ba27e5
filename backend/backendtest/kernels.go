// The contract's own kernels. Each exists as a Go function and, in kernels/, as PTX, GLSL (compiled to
// z*.spv) and WGSL; the device's Caps().Code picks. The .comp files say what each computes.

package backendtest

import (
	"embed"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync/atomic"

	"github.com/spmmrun/spmm/backend"
)

//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/zstep.spv kernels/step.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/zgrid.spv kernels/grid.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/zecho.spv kernels/echo.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/zsum.spv kernels/sum.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/ztile.spv kernels/tile.comp
//go:generate ../../tools/shaderc glslang --quiet -V --target-env vulkan1.2 -o kernels/zspin.spv kernels/spin.comp
//go:generate sh -c "cd kernels && sha256sum *.comp z*.spv >zsums.txt"

//go:embed kernels/*.ptx kernels/*.spv kernels/*.wgsl
var files embed.FS

// tileAdd is the constant that kernel tile adds: a specialisation constant in SPIR-V, text in PTX and WGSL.
const tileAdd = 1000003

// table holds what does not depend on the kind of code.
var table = map[string]backend.Binary{
	"step": {Args: 2, ReadOnly: 0b01, ParamBytes: 16, Local: [3]uint32{64, 1, 1}, Func: stepGroup},
	"grid": {Args: 1, ParamBytes: 12, Local: [3]uint32{4, 2, 2}, Func: gridGroup},
	"echo": {Args: 1, ParamBytes: 64, Local: [3]uint32{1, 1, 1}, Func: echoGroup},
	"sum":  {Args: 8, ReadOnly: 0b01111111, Local: [3]uint32{64, 1, 1}, Func: sumGroup},
	"tile": {Args: 2, ReadOnly: 0b01, Local: [3]uint32{64, 1, 1}, Func: tileGroup},
	"spin": {Args: 1, ParamBytes: 4, Local: [3]uint32{64, 1, 1}, Func: spinGroup},
}

// binaryOf returns a kernel as a device of that kind of code loads it. (A missing file is a programming error.)
func binaryOf(name string, code backend.Code) backend.Binary {
	b := table[name]
	b.Name, b.Kind = "backendtest/"+name, code
	var file string
	switch code {
	case backend.CodeGo:
		return b
	case backend.CodePTX:
		file, b.Entry = name+".ptx", name
	case backend.CodeSPIRV:
		file, b.Entry = "z"+name+".spv", "main"
	case backend.CodeWGSL:
		file, b.Entry = name+".wgsl", "main"
	}
	b.Func = nil
	text, err := files.ReadFile("kernels/" + file)
	if err != nil {
		panic(err)
	}
	b.Code = text
	if name == "tile" {
		switch code {
		case backend.CodePTX:
			b.Shared = 256
			b.Code = []byte(strings.ReplaceAll(string(text), "ADD", fmt.Sprint(tileAdd)))
		case backend.CodeWGSL:
			b.Code = []byte(strings.ReplaceAll(string(text), "ADD", fmt.Sprint(tileAdd)))
		case backend.CodeSPIRV:
			b.Spec = []backend.SpecConst{{ID: 3, Value: tileAdd}}
		}
	}
	return b
}

// params makes a parameter block of uint32 and float32 values.
func params(v ...any) []byte {
	var b []byte
	for _, x := range v {
		switch x := x.(type) {
		case uint32:
			b = le.AppendUint32(b, x)
		case float32:
			b = le.AppendUint32(b, math.Float32bits(x))
		default:
			panic(fmt.Sprintf("parameter of type %T", x))
		}
	}
	return b
}

var le = binary.LittleEndian

// step is the parameter block of kernel step, and what it computes.
type step struct{ n, rot, mul, add uint32 }

func (s step) apply(src []uint32) []uint32 {
	dst := make([]uint32, len(src))
	for i := range s.n {
		dst[i] = src[(i+s.rot)%s.n]*s.mul + s.add
	}
	return dst
}

func stepLaunch(k backend.Kernel, src, dst backend.Buffer, s step) backend.Launch {
	return backend.Launch{Kernel: k, Groups: [3]uint32{(s.n + 63) / 64, 1, 1},
		Args: []backend.Buffer{src, dst}, Params: params(s.n, s.rot, s.mul, s.add)}
}

func word(p []byte, i int) uint32 { return le.Uint32(p[4*i:]) }

func stepGroup(args [][]byte, p []byte, group [3]uint32) {
	src, dst := backend.View[uint32](args[0]), backend.View[uint32](args[1])
	n, rot, mul, add := word(p, 0), word(p, 1), word(p, 2), word(p, 3)
	for i := group[0] * 64; i < min(n, group[0]*64+64); i++ {
		dst[i] = src[(i+rot)%n]*mul + add
	}
}

func gridGroup(args [][]byte, p []byte, group [3]uint32) {
	dst := backend.View[uint32](args[0])
	nx, ny, nz := word(p, 0), word(p, 1), word(p, 2)
	for z := group[2] * 2; z < min(nz, group[2]*2+2); z++ {
		for y := group[1] * 2; y < min(ny, group[1]*2+2); y++ {
			for x := group[0] * 4; x < min(nx, group[0]*4+4); x++ {
				dst[(z*ny+y)*nx+x] = x | y<<10 | z<<20
			}
		}
	}
}

func echoGroup(args [][]byte, p []byte, _ [3]uint32) {
	dst := backend.View[uint32](args[0])
	for i := range 8 {
		dst[i] = word(p, i)
		dst[8+i] = math.Float32bits(math.Float32frombits(word(p, 8+i)) * 0.5)
	}
}

func sumGroup(args [][]byte, _ []byte, group [3]uint32) {
	dst := backend.View[uint32](args[7])
	for i := group[0] * 64; i < group[0]*64+64; i++ {
		dst[i] = 0
		for k := range 7 {
			dst[i] += uint32(k+1) * word(args[k], int(i))
		}
	}
}

func tileGroup(args [][]byte, _ []byte, group [3]uint32) {
	src, dst := backend.View[uint32](args[0]), backend.View[uint32](args[1])
	for i := range uint32(64) {
		dst[group[0]*64+i] = src[group[0]*64+63-i] + tileAdd
	}
}

// spinGroup writes nothing: its groups would write the same words at once.
func spinGroup(_ [][]byte, p []byte, group [3]uint32) {
	x := group[0]
	for range word(p, 0) {
		x = x*1664525 + 1013904223
	}
	spun.Store(x)
}

// spun keeps the loop in spinGroup.
var spun atomic.Uint32
