// Tensors, and their elements as slices.

package safetensors

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/spmmrun/spmm/formats/half"
)

// Type is an element type by the name that files give it.
type Type string

// The element types.
const (
	Bool   Type = "BOOL"
	U8     Type = "U8"
	I8     Type = "I8"
	F8E4M3 Type = "F8_E4M3"
	F8E5M2 Type = "F8_E5M2"
	U16    Type = "U16"
	I16    Type = "I16"
	F16    Type = "F16"
	BF16   Type = "BF16"
	U32    Type = "U32"
	I32    Type = "I32"
	F32    Type = "F32"
	U64    Type = "U64"
	I64    Type = "I64"
	F64    Type = "F64"
)

var sizes = map[Type]int{
	Bool: 1, U8: 1, I8: 1, F8E4M3: 1, F8E5M2: 1, U16: 2, I16: 2, F16: 2, BF16: 2,
	U32: 4, I32: 4, F32: 4, U64: 8, I64: 8, F64: 8,
}

// Size returns the bytes of an element, 0 if the type is unknown.
func (t Type) Size() int { return sizes[t] }

// Info describes a tensor.
type Info struct {
	Name  string
	Type  Type
	Shape []int64 // none for a single element
}

// bytes returns the size of the elements, or an error for a shape or a type that cannot be.
func (i Info) bytes() (int64, error) {
	size := i.Type.Size()
	if size == 0 {
		return 0, fmt.Errorf("tensor %q: unknown element type %q", i.Name, i.Type)
	}
	n := uint64(size)
	empty := false
	for _, d := range i.Shape {
		if d < 0 {
			return 0, fmt.Errorf("tensor %q: negative size in shape %v", i.Name, i.Shape)
		}
		if d == 0 {
			empty = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("tensor %q: shape %v overflows", i.Name, i.Shape)
		}
		n = lo
	}
	if empty {
		return 0, nil
	}
	return int64(n), nil
}

// Tensor is a tensor with its elements: little-endian, row-major, aligned in memory for their type.
type Tensor struct {
	Info
	Data []byte
}

// File is a file's contents.
type File struct {
	Metadata map[string]string
	Tensors  []Tensor
}

// Elem are the Go types of elements.
type Elem interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64 | float32 | float64 | half.F16 | half.BF16
}

// typeOf returns the element type that E is stored as.
func typeOf[E Elem]() Type {
	var e E
	switch any(e).(type) {
	case uint8:
		return U8
	case int8:
		return I8
	case uint16:
		return U16
	case int16:
		return I16
	case uint32:
		return U32
	case int32:
		return I32
	case uint64:
		return U64
	case int64:
		return I64
	case float32:
		return F32
	case float64:
		return F64
	case half.F16:
		return F16
	}
	return BF16
}

// NewTensor returns a tensor of one dimension that shares s's memory.
func NewTensor[E Elem](name string, s []E) Tensor {
	t := Tensor{Info: Info{name, typeOf[E](), []int64{int64(len(s))}}}
	if len(s) > 0 {
		t.Data = unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*t.Type.Size())
	}
	return t
}

// Elements returns the elements, sharing the tensor's memory. A tensor of another type is an error.
func Elements[E Elem](t Tensor) ([]E, error) {
	if want := typeOf[E](); t.Type != want {
		return nil, fmt.Errorf("tensor %q has elements of type %s, want %s", t.Name, t.Type, want)
	}
	n := len(t.Data) / t.Type.Size()
	if n == 0 {
		return nil, nil
	}
	return unsafe.Slice((*E)(unsafe.Pointer(&t.Data[0])), n), nil
}
