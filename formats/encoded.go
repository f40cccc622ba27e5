// What the formats below this package have in common.

package formats

import "github.com/spmmrun/spmm/dtype"

// Encoded is a sparse matrix in a format of its own, whose element type is known at run time only: a
// *Matrix[T] of a package below this one.
type Encoded interface {
	Format() string // the format's name
	Dims() (rows, cols int)
	NNZ() int64
	Type() dtype.Type
	// Validate checks arrays that somebody else made.
	Validate() error
	// Sparse returns exactly the matrix that was encoded. The arrays must be valid.
	Sparse() Sparse
}

// Detail is a figure that a format has for a matrix besides Stats, under the name its paper gives it.
type Detail struct {
	Name  string
	Value float64
}
