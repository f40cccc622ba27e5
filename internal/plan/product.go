// Products, and what their launches depend on.

package plan

import (
	"math"

	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/shaders/spec"
)

// product is C = alpha·A·B + beta·C with an epilogue for tensors, some times in a row.
type product struct {
	b, c        *tensor.Tensor
	bias        *tensor.Tensor // nil if the epilogue has none
	alpha, beta float64        // numbers of float32, unless sums are of f64
	epilogue    spec.Epilogue
	times       int
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

func (q product) key(m *resident.Matrix) key {
	return key{m, q.b, q.c, q.bias, math.Float64bits(q.alpha), math.Float64bits(q.beta), q.epilogue, q.times}
}

// use keeps the product's tensors until release, all of them or none.
func (q product) use() error {
	if err := q.b.Use(); err != nil {
		return err
	}
	if err := q.c.Use(); err != nil {
		q.b.Release()
		return err
	}
	if q.bias == nil {
		return nil
	}
	err := q.bias.Use()
	if err != nil {
		q.b.Release()
		q.c.Release()
	}
	return err
}

func (q product) release() {
	q.b.Release()
	q.c.Release()
	if q.bias != nil {
		q.bias.Release()
	}
}
