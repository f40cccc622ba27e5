// AutoP: the precision that X and Y need.

package sddmm

import (
	"context"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/rfx"
)

// auto tells of the last product whose precision was found.
type auto struct{ ran, lossless bool }

// Reproduced returns the precision of the last product in reproducible mode, and whether it was found to lose nothing;
// 0 before the first one.
func (s *Sampler) Reproduced() (rfx.P, bool) {
	switch {
	case s.auto == nil:
		return s.p, false
	case !s.auto.ran:
		return 0, false
	}
	return s.p, s.auto.lossless
}

// Scans tells whether the precision is found anew for each product.
func (s *Sampler) Scans() bool { return s.auto != nil }

// Scan finds the precision that X and Y need, where it was not given. It waits for the device.
func (s *Sampler) Scan(ctx context.Context, o Operands) error {
	if s.auto == nil {
		return nil
	}
	rows := make([]rfx.Range, o.X.Rows+o.Y.Rows)
	if len(rows) > 0 && s.entries > 0 {
		s.p = rfx.P47
		c := composer{Sampler: s, staging: s.own}
		x, ldx := c.matrix(o.X, &s.own.x)
		y, ldy := c.matrix(o.Y, &s.own.y)
		to := c.vector(o.S, &s.own.s, false) // not written
		if c.err == nil {
			c.reproducible(o, 0, x, ldx, y, ldy, s.rows, to)
		}
		if c.err != nil {
			return c.err
		}
		if _, err := s.dev.Run(ctx, c.launches...); err != nil {
			return err
		}
		if err := s.own.ranges.Buffer.Read(ctx, 0, backend.Bytes(rows)); err != nil {
			return err
		}
	}
	s.auto.ran = true
	s.p, s.auto.lossless = rfx.Auto(rows)
	return nil
}
