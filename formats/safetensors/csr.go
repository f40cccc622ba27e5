// CSR matrices in files.

package safetensors

import (
	"cmp"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

const csrVersion = 1

// CSR says how files hold matrices in compressed sparse rows.
var CSR = Format{
	Name: "csr", Version: csrVersion,
	Encode: func(a formats.Sparse, _ map[string]int) (Encoded, error) { return Plain(a), nil },
	Open:   openCSR,
}

// Plain returns a CSR matrix as one among encoded matrices, in format "csr".
func Plain(a formats.Sparse) Encoded { return plain{a} }

// plain is a CSR matrix among the encoded ones.
type plain struct{ a formats.Sparse }

func (p plain) Format() string         { return "csr" }
func (p plain) Dims() (rows, cols int) { return p.a.Dims() }
func (p plain) NNZ() int64             { return p.a.NNZ() }
func (p plain) Type() dtype.Type       { return p.a.Type() }
func (p plain) Validate() error        { return p.a.Validate() }
func (p plain) Sparse() formats.Sparse { return p.a }
func (p plain) Container() *Matrix {
	switch a := p.a.(type) {
	case *formats.CSR[half.F16]:
		return csrMatrix(a)
	case *formats.CSR[half.BF16]:
		return csrMatrix(a)
	case *formats.CSR[float32]:
		return csrMatrix(a)
	}
	panic(fmt.Sprintf("safetensors: %T is not a CSR matrix", p.a))
}

func csrMatrix[T formats.Value](a *formats.CSR[T]) *Matrix {
	return &Matrix{
		Format: "csr", Version: csrVersion, Type: a.Type(), Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(),
		Tensors: []Tensor{NewTensor("rowptr", a.RowPtr), NewTensor("colidx", a.ColIdx), NewTensor("values", a.Val)},
	}
}

func openCSR(m *Matrix) (Encoded, error) {
	switch m.Type {
	case dtype.F16:
		return newCSR[half.F16](m)
	case dtype.BF16:
		return newCSR[half.BF16](m)
	}
	return newCSR[float32](m)
}

func newCSR[T formats.Value](m *Matrix) (Encoded, error) {
	a := &formats.CSR[T]{Rows: m.Rows, Cols: m.Cols}
	err := cmp.Or(Array(m, "rowptr", &a.RowPtr), Array(m, "colidx", &a.ColIdx), Array(m, "values", &a.Val))
	return plain{a}, err
}
