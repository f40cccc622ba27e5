// Preparing a matrix.

package plan

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// New is Prepare for work that is not resolved, with that form of a valid matrix.
func New(ctx context.Context, d *device.Device, a formats.Encoded, w work.Work, f work.Form) (*Plan, error) {
	resolved, err := w.Resolve(a, f)
	if err != nil {
		return nil, err
	}
	return Prepare(ctx, d, resolved)
}

// Prepare prepares a matrix, which is not needed afterwards. Where the device has a kernel for the packing that the
// matrix comes in, and no other is asked for, it is taken as it is; else it is decoded and encoded anew. Prepare tries
// the ways to multiply in turn, until one is not refused.
func Prepare(ctx context.Context, d *device.Device, w *work.Work) (*Plan, error) {
	start := time.Now()
	p, err := prepare(ctx, d, w)
	if err != nil {
		return nil, err
	}
	p.ChooseTime = max(0, time.Since(start)-p.EncodeTime-p.UploadTime)
	return p, nil
}

func prepare(ctx context.Context, d *device.Device, w *work.Work) (*Plan, error) {
	if w.Tune {
		return tune(ctx, d, w)
	}
	var refused error // the first
	for x, err := range ways(ctx, d, w) {
		if err != nil {
			return nil, err
		}
		if x.instead != "" {
			x.why, refused = fmt.Sprintf("%s: %v", x.instead, refused), nil
		}
		p, err := build(ctx, d, w, x)
		if err == nil || !work.Refusal(err) {
			return p, err
		}
		refused = cmp.Or(refused, err)
	}
	return nil, refused
}
