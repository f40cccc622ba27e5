// The parameter block is one Go struct of a program. The declarations in all languages, the bytes of a launch, and the
// parameters of the Go kernel are derived from it.

package spec

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"strings"
	"unsafe"

	"github.com/spmmrun/spmm/dtype"
)

// Param is a field of the parameter block.
type Param struct {
	Name  string
	Float bool // f32; else u32
}

// ScalarBytes is the size of alpha and beta as f64, which variants of F64 have behind their parameters. The parameters
// of these names hold them rounded.
const ScalarBytes = 16

// BlockFor is Block for a variant, which may be of F64.
func BlockFor[T any](v *Variant, params T, alpha, beta float64) []byte {
	b := Block(params)
	if v.In == dtype.F64 {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(alpha))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(beta))
	}
	return b
}

// Scalars returns alpha and beta of a block of parameters for a variant of F64.
func Scalars(block []byte) (alpha, beta float64) {
	b := block[len(block)-ScalarBytes:]
	return math.Float64frombits(binary.LittleEndian.Uint64(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
}

// Params lists the fields of struct T, which are uint32 or float32; those of an embedded struct count as T's own. In
// the sources a field has its Go name in lower case.
func Params[T any]() []Param { return fields(reflect.TypeFor[T]()) }

func fields(t reflect.Type) []Param {
	var ps []Param
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			ps = append(ps, fields(f.Type)...)
		case f.Type.Kind() == reflect.Uint32 || f.Type.Kind() == reflect.Float32:
			ps = append(ps, Param{Name: strings.ToLower(f.Name), Float: f.Type.Kind() == reflect.Float32})
		default:
			panic(fmt.Sprintf("spec: %v.%s is a %v: parameters are uint32 or float32", t, f.Name, f.Type))
		}
	}
	return ps
}

// Block returns the bytes of a parameter block.
func Block[T any](p T) []byte {
	b := make([]byte, unsafe.Sizeof(p))
	*(*T)(unsafe.Pointer(unsafe.SliceData(b))) = p
	return b
}

// View returns the parameters in a block, as a Go kernel reads them.
func View[T any](block []byte) T {
	var p T
	return *(*T)(unsafe.Pointer(unsafe.SliceData(block[:unsafe.Sizeof(p)])))
}
