// What moving B between several devices takes: by the rate of their links, which is measured once.

package many

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// linkRate is how fast one device's memory is copied to another's, as the cache folder has it.
type linkRate struct {
	Version   int       `json:"version"`
	From      string    `json:"from"`
	To        string    `json:"to"`
	Driver    string    `json:"driver"`
	PerSecond float64   `json:"bytes_per_second"`
	At        time.Time `json:"at"`
}

const linkVersion = 1

func (r *linkRate) validate() error {
	if !(r.PerSecond >= 1e6 && r.PerSecond <= 1e14) {
		return fmt.Errorf("a link of %g bytes a second", r.PerSecond)
	}
	return nil
}

// linkBetween returns the bytes a second that go from one device to another: from the cache folder, else measured now,
// in some milliseconds. It is 0 if there is no memory to measure with.
func linkBetween(ctx context.Context, from, to *device.Device) (float64, error) {
	file := fmt.Sprintf("link-%s-%s.json", device.Key(from.Info()), device.Key(to.Info()))
	r := new(linkRate)
	if device.ReadJSON(file, r) && r.Version == linkVersion && r.From == from.Info().Name && r.To == to.Info().Name &&
		r.Driver == from.Info().Driver+", "+to.Info().Driver {
		err := r.validate()
		if err == nil {
			return r.PerSecond, nil
		}
		_ = cache.Refuse(file, err)
	}
	rate, err := measureLink(ctx, from, to)
	if errors.Is(err, backend.ErrOutOfMemory) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("measuring the link to %v: %w", to.Info(), err)
	}
	*r = linkRate{linkVersion, from.Info().Name, to.Info().Name, from.Info().Driver + ", " + to.Info().Driver, rate,
		time.Now().UTC().Truncate(time.Second)}
	if r.validate() == nil {
		_ = device.SaveJSON(file, r) // what cannot be kept is measured again
	}
	return rate, nil
}

// measureLink copies some data a few times; the best counts.
func measureLink(ctx context.Context, from, to *device.Device) (float64, error) {
	const bytes, runs = 64 << 20, 4
	src, err := from.NewBuffer(bytes, "a buffer for measuring")
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := to.NewBuffer(bytes, "a buffer for measuring")
	if err != nil {
		return 0, err
	}
	defer dst.Close()
	if err := device.Fill(ctx, src, bytes); err != nil {
		return 0, err
	}
	const line = 1 << 20
	best := time.Duration(math.MaxInt64)
	for range runs {
		start := time.Now()
		if err := (copying{dst: dst, src: src, dstPitch: line, srcPitch: line, width: line,
			count: bytes / line}).run(ctx); err != nil {
			return 0, err
		}
		best = min(best, time.Since(start))
	}
	return bytes / max(best, time.Nanosecond).Seconds(), nil
}

// moving predicts what it takes to bring a B of n columns from where it lies to where a split needs it: the most that
// one device sends or receives, over the link's rate.
func moving(devs []*device.Device, m divided, o Sharing, split api.Split, weights []float64,
	rate float64) time.Duration {
	rows, cols := m.A.Dims()
	g := &Plan{
		Split: split, weights: weights, bounds: cutColumns(rows, weights), plans: make([]*plan.Plan, len(devs)),
		all: whole{Sides: plan.Sides{Rows: rows, Cols: cols, Right: m.Right}},
	}
	s, at := g.need(roleB, m.Cols)
	from := &Tensor{Shape: s, At: o.From, boxes: g.boxes(s, o.From)}
	for _, x := range from.boxes {
		var t *tensor.Tensor
		if !x.empty() {
			t = new(tensor.Tensor)
		}
		from.parts = append(from.parts, t)
	}
	sent, most := make([]int64, len(devs)), int64(0)
	for d, x := range g.boxes(s, at) {
		received := int64(0)
		for _, i := range from.sources(d, x) {
			if i != d {
				part := from.boxes[i].and(x)
				n := int64(part.r1-part.r0) * int64(part.c1-part.c0) * int64(m.Precision.Storage().Size())
				received += n
				sent[i] += n
				most = max(most, sent[i])
			}
		}
		most = max(most, received)
	}
	return time.Duration(float64(most) / rate * float64(time.Second))
}
