// Measuring a device's rates with the kernels of package peak.

package choose

import (
	"context"
	"errors"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/peak"
	"github.com/spmmrun/spmm/shaders/spec"
)

// measure runs the peak kernels.
func measure(ctx context.Context, d *device.Device) (*model.Rates, error) {
	info := d.Info()
	c := &model.Rates{
		Version: model.RatesVersion, Device: info.Name, Driver: info.Driver,
		Rates: api.Rates{At: time.Now().UTC().Truncate(time.Second), Fresh: true, Matrix: map[string]float64{}},
	}
	for _, n := range streamSizes(d) {
		r, err := peakRate(ctx, d, first(peak.Variants(d.Caps(), peak.Copy)), n, 0)
		if err != nil {
			return nil, err
		}
		if r > 0 {
			c.Copy = append(c.Copy, api.Bandwidth{Bytes: 2 * n, PerSecond: r})
		}
	}
	var err error
	if c.Cache, err = peakRate(ctx, d, first(peak.Variants(d.Caps(), peak.Read)), cached, 0); err != nil {
		return nil, err
	}
	if c.FMA, err = peakRate(ctx, d, first(peak.Variants(d.Caps(), peak.FMA)), cached, 0); err != nil {
		return nil, err
	}
	if c.FMA64, err = peakRate(ctx, d, first(peak.Variants(d.Caps(), peak.FMA64)), cached, 0); err != nil {
		return nil, err
	}
	for _, v := range peak.Variants(d.Caps(), peak.Matrix) {
		key := model.ShapeKey(v.Need.Shapes[0])
		if c.Matrix[key] > 0 {
			continue // done with another subgroup size
		}
		r, err := peakRate(ctx, d, v, cached, 0)
		if err != nil {
			return nil, err
		}
		c.Matrix[key] = r
	}
	c.LaunchUS, c.LatencyUS, err = latencies(ctx, d)
	return c, err
}

// first returns the first variant, or nil.
func first(vs []*spec.Variant) *spec.Variant {
	if len(vs) == 0 {
		return nil
	}
	return vs[0]
}

// cached is the amount of data that reading from cache is measured with.
const cached = model.SharedCache

// streamSizes are the sizes of the buffers that are copied.
func streamSizes(d *device.Device) []int64 {
	var sizes []int64
	for n := int64(cached); n <= 256<<20; n *= 4 {
		if n > d.Limit() || d.Info().Memory > 0 && 4*n > d.Info().Memory || d.Info().Kind == "cpu" && n > 64<<20 {
			break
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// latencies measures a launch that copies next to nothing, and a step of reading by a workgroup that is alone on the
// device, in µs; 0 for what the device cannot run.
func latencies(ctx context.Context, d *device.Device) (launch, step float64, err error) {
	us := func(kind peak.Kind, bytes int64) (float64, error) {
		v := first(peak.Variants(d.Caps(), kind))
		if v == nil {
			return 0, nil
		}
		rate, err := peakRate(ctx, d, v, max(bytes, int64(v.Local[0]*v.Const("WIDTH"))), 1)
		if err != nil || rate == 0 {
			return 0, err
		}
		return peak.Done(v, 1, 1) / rate * 1e6, nil
	}
	if launch, err = us(peak.Copy, 0); err != nil {
		return 0, 0, err
	}
	step, err = us(peak.Read, cached)
	return launch, step, err
}

// peakRate measures a variant's work per second on buffers of the given size, with this many workgroups or (0) as many
// as keep the device busy; 0 if the device cannot run it.
func peakRate(ctx context.Context, d *device.Device, v *spec.Variant, bytes int64, groups uint32) (float64, error) {
	if v == nil {
		return 0, nil
	}
	loaded, err := d.Kernel(peak.Program, v)
	if errors.Is(err, backend.ErrUnsupported) || errors.Is(err, backend.ErrCompile) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	j := newPeakJob(d.Caps(), v, bytes)
	if groups > 0 {
		j.groups = groups
	}
	src, err := d.NewBuffer(bytes, "a buffer for measuring")
	if err != nil {
		return 0, err
	}
	defer src.Close()
	dst, err := d.NewBuffer(max(bytes, peak.Output(v, j.groups)), "a buffer for measuring")
	if err != nil {
		return 0, err
	}
	defer dst.Close()
	if err := device.Fill(ctx, src, bytes); err != nil {
		return 0, err
	}
	j.d, j.launch = d, backend.Launch{Kernel: loaded, Args: []backend.Buffer{src, dst}}
	return j.rate(ctx)
}

// peakJob is a measurement: a launch, done again and again in one submission (Copy) or with more
// rounds, until it lasts long enough.
type peakJob struct {
	d               *device.Device
	v               *spec.Variant
	groups, rounds  uint32
	span            uint32
	launch          backend.Launch
	launches        []backend.Launch
	repeat, longest int
}

// A measurement lasts long enough that starting it does not matter, and is repeated.
const (
	longEnough = 4 * time.Millisecond
	peakRuns   = 3
)

func newPeakJob(c backend.Caps, v *spec.Variant, bytes int64) *peakJob {
	j := &peakJob{v: v, rounds: 16, repeat: 1, longest: 1}
	j.span = uint32(bytes / int64(max(1, v.Const("WIDTH"))))
	if peak.Kind(v.Const("KIND")) == peak.Copy {
		steps := j.span / v.Local[0]
		j.rounds = max(1, min(64, steps/2048))
		j.groups, j.longest = steps/j.rounds, 256
		return j
	}
	invocations, units := 2048, max(c.Units, 64) // of a unit, to keep it busy
	if v.Code == backend.CodeGo {
		invocations, units = 8, c.Units
	}
	j.groups = max(1, uint32(units*invocations)/v.Local[0])
	return j
}

// rate returns the best rate of several runs.
func (j *peakJob) rate(ctx context.Context) (float64, error) {
	var best float64
	for runs := 0; runs < peakRuns; {
		l := peak.Launch(j.v, j.groups, j.rounds, j.span)
		j.launch.Groups, j.launch.Params = l.Groups, l.Params
		j.launches = j.launches[:0]
		for range j.repeat {
			j.launches = append(j.launches, j.launch)
		}
		t, err := j.d.Run(ctx, j.launches...)
		if err != nil {
			return 0, err
		}
		if took := t.Best(); took < longEnough && j.longer() {
			continue
		} else if took > 0 {
			best = max(best, peak.Done(j.v, j.groups, j.rounds)*float64(j.repeat)/took.Seconds())
		}
		runs++
	}
	return best, nil
}

// longer doubles the work, if it may.
func (j *peakJob) longer() bool {
	switch {
	case j.longest > 1 && j.repeat < j.longest:
		j.repeat *= 2
	case j.longest == 1 && j.rounds < 1<<20:
		j.rounds *= 2
	default:
		return false
	}
	return true
}
