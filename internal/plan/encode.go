// Packing a matrix for a file.

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// Encode packs a matrix as Prepare would, for a file.
func Encode(ctx context.Context, d *device.Device, w *work.Work) (formats.Encoded, error) {
	if w.A.Kind() != dtype.Invalid {
		return nil, errors.New("Options.Quantise: Encode packs no quantised matrix: formats.Quantise makes one that files hold")
	}
	var refused error // the first
	for c, err := range choose.InOrder(ctx, d, w) {
		if err != nil {
			return nil, err
		}
		e, err := c.Pack(ctx, w.A)
		if err == nil {
			return fileForm(w, e)
		}
		if !work.Refusal(err) {
			return nil, err
		}
		refused = cmp.Or(refused, err)
	}
	return nil, refused
}

// fileForm returns a packed matrix in the form that files hold. Where the work leaves the format open, that is CSR
// where files do not hold the packing.
func fileForm(w *work.Work, e *work.Packed) (formats.Encoded, error) {
	if f, ok := e.Data.Format.(formats.Encoded); ok && f.Format() == e.Format {
		return f, nil
	}
	if e.Kernel.Full && w.Format != "" { // what was filled with zeros lost its pattern
		return nil, fmt.Errorf("format %s, in a file: %w", e.Format, formats.ErrNotFull)
	}
	if e.Format != "csr" && w.Format != "" {
		return nil, fmt.Errorf("kernel %s/%s packs this matrix in a form that files do not hold: pack it for another device: %w",
			e.Format, e.Name, backend.ErrUnsupported)
	}
	return e.Matrix.CSR(), nil
}
