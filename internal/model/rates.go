// The measured rates of a device.

package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Rates are the measured rates of a device as its file has them, the roofs of the roofline model. Times of a model are
// scaled by LaunchUS and LatencyUS.
type Rates struct {
	Version int    `json:"version"`
	Device  string `json:"device"`
	Driver  string `json:"driver"`
	api.Rates
}

// RatesVersion changes with what is measured and how.
const RatesVersion = 8

// Limits of what a file of rates may say. No device comes near either rate.
const (
	leastRate, mostRate = 1e3, 1e18 // a second
	leastUS             = 1e-5
	mostEntries         = 64
)

// Validate refuses rates that no measurement gives: files may hold anything.
func (r *Rates) Validate() error {
	if r.Version != RatesVersion {
		return fmt.Errorf("rates of version %d, want %d", r.Version, RatesVersion)
	}
	if len(r.Copy) == 0 || len(r.Copy) > mostEntries || len(r.Matrix) > mostEntries {
		return fmt.Errorf("%d rates of copies (want 1 to %d) and %d of matrix units (want at most %d)", len(r.Copy), mostEntries, len(r.Matrix), mostEntries)
	}
	last := int64(0)
	for _, s := range r.Copy {
		if s.Bytes <= last {
			return fmt.Errorf("a copy of %d bytes after one of %d: want ascending sizes", s.Bytes, last)
		}
		last = s.Bytes
		if err := plausible("stream", s.PerSecond); err != nil {
			return err
		}
	}
	for key, x := range r.Matrix {
		if err := plausible("matrix", x); err != nil {
			return fmt.Errorf("%w of %.40q", err, key)
		}
	}
	for name, us := range map[string]float64{"launch_us": r.LaunchUS, "latency_us": r.LatencyUS} {
		if us != 0 && !(us >= leastUS && us <= mostUS) {
			return fmt.Errorf("%s is %v: want %v to %v, or 0", name, us, leastUS, mostUS)
		}
	}
	if err := plausible("gather", r.Cache); err != nil {
		return err
	}
	if r.FMA64 != 0 {
		if err := plausible("fma_f64", r.FMA64); err != nil {
			return err
		}
	}
	return plausible("fma", r.FMA)
}

// plausible refuses a rate that is not a number or that no device has.
func plausible(name string, x float64) error {
	if math.IsNaN(x) || x < leastRate || x > mostRate {
		return fmt.Errorf("rate %s is %v a second: want %v to %v", name, x, leastRate, mostRate)
	}
	return nil
}

// Raise takes over each rate that is higher in o, which is of the same device: whatever else a device does while it is
// measured lowers what is measured, so the best seen is nearest to what it can do.
func (r *Rates) Raise(o *Rates) {
	for i := range r.Copy {
		if i < len(o.Copy) && o.Copy[i].Bytes == r.Copy[i].Bytes {
			r.Copy[i].PerSecond = max(r.Copy[i].PerSecond, o.Copy[i].PerSecond)
		}
	}
	r.Cache, r.FMA, r.FMA64 = max(r.Cache, o.Cache), max(r.FMA, o.FMA), max(r.FMA64, o.FMA64)
	for key, x := range o.Matrix {
		r.Matrix[key] = max(r.Matrix[key], x)
	}
	r.LaunchUS, r.LatencyUS = least(r.LaunchUS, o.LaunchUS), least(r.LatencyUS, o.LatencyUS)
}

// Best returns the higher of each rate of r and o, which is of the same device or nil.
func (r *Rates) Best(o *Rates) *Rates {
	best := *r
	best.Copy, best.Matrix = slices.Clone(r.Copy), maps.Clone(r.Matrix)
	if o != nil {
		best.Raise(o)
	}
	return &best
}

// least is the smaller of two times; 0 means unknown.
func least(x, y float64) float64 {
	if x == 0 || y == 0 {
		return max(x, y)
	}
	return min(x, y)
}

// Seen returns the rates with those raised that a multiplication exceeded: it took less time for its work than they
// allow. Fetching from cache is measured with data as large as SharedCache, so that only a B of that size tells of it.
func (r *Rates) Seen(v *spec.Variant, w Work, took time.Duration) *Rates {
	to := r.Best(nil)
	raise := func(rate *float64, n int64) {
		if *rate > 0 && took > 0 {
			*rate = min(mostRate, max(*rate, float64(n)/took.Seconds()))
		}
	}
	if i := r.band(w.Bytes); i >= 0 && took < at(w.Bytes, r.stream(w.Bytes)) {
		raise(&to.Copy[i].PerSecond, w.Bytes)
	}
	if w.B >= SharedCache {
		raise(&to.Cache, w.Gather)
	}
	if key := r.arithmeticKey(v); key != "" {
		x := to.Matrix[key]
		raise(&x, w.FLOPs)
		to.Matrix[key] = x
	} else if len(v.Need.Shapes) == 0 && v.In == dtype.F64 {
		raise(&to.FMA64, w.FLOPs)
	} else if len(v.Need.Shapes) == 0 {
		raise(&to.FMA, w.FLOPs)
	}
	return to
}

// Exceeded tells whether a multiplication was faster than rates allow that it could raise.
func (r *Rates) Exceeded(v *spec.Variant, w Work, took time.Duration) bool {
	b := r.Bound(v, w)
	return took > 0 && (took < b.Memory || took < b.Compute || took < b.Gather && w.B >= SharedCache)
}

// SharedCache is the bytes that reading from cache is measured with: every GPU's second-level cache holds them, and a
// core's.
const SharedCache = 1 << 20

// band returns which rate of copies is that of n bytes in use: the largest size that does not exceed them, or the
// smallest; -1 if there are none.
func (r *Rates) band(bytes int64) int {
	i := len(r.Copy) - 1
	for i > 0 && r.Copy[i].Bytes > bytes {
		i--
	}
	return i
}

// stream returns the bandwidth with n bytes in use: the best that was measured from the next smaller size on.
// (With little data most of a copy's time is its launch.)
func (r *Rates) stream(bytes int64) float64 {
	var best float64
	for i, s := range r.Copy {
		if i+1 == len(r.Copy) || r.Copy[i+1].Bytes > bytes {
			best = max(best, s.PerSecond)
		}
	}
	return best
}

// arithmetic returns the operations that a variant's instructions could do in a second, 0 if that is not known. An MMA
// shape that was not measured counts as the best of its operand type.
func (r *Rates) arithmetic(v *spec.Variant) float64 {
	switch {
	case len(v.Need.Shapes) > 0:
		return r.Matrix[r.arithmeticKey(v)]
	case v.In == dtype.F64:
		return r.FMA64
	}
	return r.FMA
}

// arithmeticKey is which rate of matrix units is a variant's, "" if none is.
func (r *Rates) arithmeticKey(v *spec.Variant) string {
	if len(v.Need.Shapes) == 0 {
		return ""
	}
	shape := v.Need.Shapes[0]
	if key := ShapeKey(shape); r.Matrix[key] > 0 {
		return key
	}
	best := ""
	for key, x := range r.Matrix {
		if strings.HasSuffix(key, " "+shape.A.String()) && (best == "" || x > r.Matrix[best]) {
			best = key
		}
	}
	return best
}

// ShapeKey names an MMA shape with its operand type, as in "16×8×16 f16".
func ShapeKey(s backend.MatrixShape) string { return fmt.Sprintf("%d×%d×%d %v", s.M, s.N, s.K, s.A) }
