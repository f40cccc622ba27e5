// Matrices that are encoded already, so that preprocessing is paid once.

package spmm

import (
	"context"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/plan"
)

// Encode packs a as Prepare would for the device, but leaves it on the host, to be written to a file with
// safetensors.WriteMatrix and prepared any number of times. It packs for fast mode. Where the device's kernel packs the
// format that was asked for in a form that files do not hold, that is ErrUnsupported.
func Encode(ctx context.Context, dev *Device, a formats.Encoded, o Options) (formats.Encoded, error) {
	d, w, err := o.on(dev, "Encode", true, a)
	if err != nil {
		return nil, err
	}
	return plan.Encode(ctx, d, w)
}

// Compare packs a in every format, or in those that o allows, as Prepare would for the device in fast mode, and
// predicts a multiplication by o.Cols columns. Formats that cannot be packed, or that the device has no
// kernel for, have an Err.
func Compare(ctx context.Context, dev *Device, a formats.Encoded, o Options) ([]Packing, error) {
	d, w, err := o.on(dev, "Compare", true, a)
	if err != nil {
		return nil, err
	}
	return choose.Compare(ctx, d, w)
}
