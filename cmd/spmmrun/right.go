// Products with A on the right: Y = X·Aᵀ is C = A·B with X = Bᵀ and Y = Cᵀ in the same memory.

package main

import (
	"errors"

	"github.com/spmmrun/spmm/formats"
)

// checkRight refuses what --right is not for.
func (j *job) checkRight() error {
	switch {
	case !j.right:
		return nil
	case isList(j.backend) || j.memory != 0:
		return errors.New("--right is for one device that holds A, B and C: leave --memory out, and name one --backend")
	case j.epilogue.biasFile != "":
		return errors.New("--right is not for --bias: leave one of them out")
	}
	return nil
}

// across returns B or C as the plan has it: with --right its transpose, in the same memory.
func across[T formats.Value](j *job, d *formats.Dense[T]) *formats.Dense[T] {
	if !j.right {
		return d
	}
	return &formats.Dense[T]{Rows: d.Cols, Cols: d.Rows, LD: d.LD, ColMajor: !d.ColMajor, Data: d.Data}
}
