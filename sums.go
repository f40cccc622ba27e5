// Sums of reproducible mode before they are rounded.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/plan"
)

// Sums is entries of a matrix's rows on a device, whose products in reproducible mode are not rounded: for programs in which several
// processes have some of the columns each, and add the sums up (package rfx), as package dist does. Its methods may be called from one
// goroutine at a time.
type Sums[T formats.Value] struct{ s *plan.Sums }

// NewSums brings the entries of a to a device, as integers at precision p; rows are the ranges of the whole rows that they are of. Close
// frees them.
func NewSums[T formats.Value](ctx context.Context, dev *Device, a *formats.CSR[T], rows []rfx.Range, p int) (*Sums[T], error) {
	d, err := dev.alone("NewSums")
	if err != nil {
		return nil, err
	}
	s, err := plan.NewSums(ctx, d, a, rows, rfx.P(p))
	if err != nil {
		return nil, err
	}
	return &Sums[T]{s}, nil
}

// Multiply writes the sums of the entries' products with b, which lies on the device row-major in one block: as many for each row of the
// matrix as b has columns. Columns are quantised by the ranges that b has of them; to have those of a larger matrix, b has a row more,
// which no entry meets, with an element of each range. What is not finite counts as 0: see rfx.Classify.
func (s *Sums[T]) Multiply(ctx context.Context, b *Tensor[T], sums []rfx.Sum) error {
	t, err := oneTensor(b)
	if err != nil {
		return err
	}
	return s.s.Multiply(ctx, t, sums)
}

// Info describes what is on the device.
func (s *Sums[T]) Info() PlanInfo { return PlanInfo(s.s.Describe()) }

// Close frees what is on the device.
func (s *Sums[T]) Close() error { return s.s.Close() }
