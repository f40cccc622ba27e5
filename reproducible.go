// Reproducible mode.

package spmm

import (
	"fmt"

	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/work"
)

// Mode is how sums are formed.
type Mode uint8

// The modes.
const (
	// Fast sums in float32, in an order that the device and the plan decide.
	Fast Mode = iota
	// Reproducible computes RFX-p products, which have the same bits on every device: see package
	// formats/rfx and docs/reproducible.md.
	Reproducible
)

// String returns "fast" or "reproducible".
func (m Mode) String() string {
	switch m {
	case Fast:
		return "fast"
	case Reproducible:
		return "reproducible"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// AutoP, as Options.P, takes for each multiplication the least precision that loses nothing of A or B, or
// 47 if none is enough. It costs a pass over B and a round trip to the host.
const AutoP = -1

// precision returns the P to plan with, 0 for fast mode.
func (o Options) precision() (rfx.P, error) {
	switch {
	case o.Mode == Fast && o.P != 0:
		return 0, fmt.Errorf("Options.P: %d: P is for reproducible mode", o.P)
	case o.Mode == Fast:
		return 0, nil
	case o.Mode != Reproducible:
		return 0, fmt.Errorf("Options.Mode: %d: want Fast or Reproducible", o.Mode)
	case o.P == 0:
		return rfx.P23, nil
	case o.P == AutoP:
		return work.AutoP, nil
	}
	if err := rfx.P(o.P).Check(); err != nil {
		return 0, fmt.Errorf("Options.P: %w", err)
	}
	return rfx.P(o.P), nil
}

// Reproduced returns the precision p of the last multiplication or sampled product in reproducible mode, and whether it
// was found, by AutoP, to lose nothing of the operands: then every finite sum is the exact one, correctly rounded.
// Before the first, and in fast mode, it returns 0 and false. On several devices, where each finds the precision that
// its part needs, it is the largest; where one loses nothing its outputs are correctly rounded, so that they have the
// same bits whichever it is.
func (p *Plan) Reproduced() (precision int, correctlyRounded bool) {
	bits, lossless := p.p.Reproduced()
	return int(bits), lossless
}
