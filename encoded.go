// Matrices that are encoded already, so that preprocessing is paid once.

package spmm

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/plan"
)

// Encode packs a as Prepare would for the device, but leaves it on the host, to be written to a file with
// safetensors.WriteMatrix and prepared any number of times. It packs for fast mode.
func Encode(ctx context.Context, dev *Device, a formats.Encoded, o Options) (formats.Encoded, error) {
	opt, err := o.with(a)
	if err != nil {
		return nil, err
	}
	return plan.Encode(ctx, dev.d, a, opt)
}

// Compare packs a in every format, or in those that o allows, as Prepare would for the device in fast mode, and
// predicts a multiplication by o.Cols columns. Formats that cannot be packed, or that the device has no
// kernel for, have an Err.
func Compare(ctx context.Context, dev *Device, a formats.Encoded, o Options) ([]Packing, error) {
	opt, err := o.with(a)
	if err != nil {
		return nil, err
	}
	ps, err := plan.Compare(ctx, dev.d, a, opt)
	return packings(ps), err
}

// Measured tells when the device's speeds were measured, by which formats are chosen, and whether this
// call or an earlier one of the same Device did so rather than an earlier process. It measures them if
// need be, which takes a fraction of a second.
func (d *Device) Measured(ctx context.Context) (at time.Time, now bool, err error) {
	c, err := d.d.Rates(ctx)
	if err != nil {
		return time.Time{}, false, err
	}
	return c.At, c.Fresh, nil
}
