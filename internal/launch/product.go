// Products, and what their launches depend on.

package launch

import (
	"math"

	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Product is C = alpha·A·B + beta·C with an epilogue for tensors, some times in a row.
type Product struct {
	B, C        *tensor.Tensor
	Bias        *tensor.Tensor // nil if the epilogue has none
	Alpha, Beta float64        // numbers of float32, unless sums are of f64
	Epilogue    spec.Epilogue
	Times       int
}

// key is all that the launches of a product depend on. Numbers are compared by their bits: −0 is not 0, and NaN
// is NaN.
type key struct {
	m           *resident.Matrix
	b, c, bias  *tensor.Tensor
	alpha, beta uint64
	epilogue    spec.Epilogue
	times       int
}

func (q Product) key(m *resident.Matrix) key {
	return key{m, q.B, q.C, q.Bias, math.Float64bits(q.Alpha), math.Float64bits(q.Beta), q.Epilogue, q.Times}
}

// Use keeps the product's tensors until release, all of them or none.
func (q Product) Use() error {
	if err := q.B.Use(); err != nil {
		return err
	}
	if err := q.C.Use(); err != nil {
		q.B.Release()
		return err
	}
	if q.Bias == nil {
		return nil
	}
	err := q.Bias.Use()
	if err != nil {
		q.B.Release()
		q.C.Release()
	}
	return err
}

func (q Product) Release() {
	q.B.Release()
	q.C.Release()
	if q.Bias != nil {
		q.Bias.Release()
	}
}
