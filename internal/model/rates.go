// The measured rates of a device.

package model

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Rates are what a device reached at most when it was measured: the roofs of the roofline model. A rate of 0 is not
// known.
type Rates struct {
	Version int                `json:"version"`
	Device  string             `json:"device"`
	Driver  string             `json:"driver"`
	At      time.Time          `json:"at"`      // when they were measured last
	Fresh   bool               `json:"-"`       // measured by this process, rather than read from the cache folder
	Stream  []Bandwidth        `json:"stream"`  // of copies, by bytes in use, ascending: caches make small ones faster
	Gather  float64            `json:"gather"`  // bytes a second read from data that sits in the cache that all units share
	FMA     float64            `json:"fma"`     // floating-point operations a second of f32 multiply-adds
	FMA64   float64            `json:"fma_f64"` // the same of f64, where there are kernels for them
	Matrix  map[string]float64 `json:"matrix"`  // the same of matrix units, by ShapeKey
	// LaunchUS is what a launch of next to nothing takes in a list of many, LatencyUS what a workgroup that is alone on the
	// device takes for each step of reading from cache. In µs; times of a model are scaled by them.
	LaunchUS  float64 `json:"launch_us"`
	LatencyUS float64 `json:"latency_us"`
}

// Bandwidth is the bytes read and written a second by a copy that has that many bytes in use.
type Bandwidth struct {
	Bytes     int64   `json:"bytes"`
	PerSecond float64 `json:"per_second"`
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
	if len(r.Stream) == 0 || len(r.Stream) > mostEntries || len(r.Matrix) > mostEntries {
		return fmt.Errorf("%d rates of copies (want 1 to %d) and %d of matrix units (want at most %d)", len(r.Stream), mostEntries, len(r.Matrix), mostEntries)
	}
	last := int64(0)
	for _, s := range r.Stream {
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
	if err := plausible("gather", r.Gather); err != nil {
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
	for i := range r.Stream {
		if i < len(o.Stream) && o.Stream[i].Bytes == r.Stream[i].Bytes {
			r.Stream[i].PerSecond = max(r.Stream[i].PerSecond, o.Stream[i].PerSecond)
		}
	}
	r.Gather, r.FMA, r.FMA64 = max(r.Gather, o.Gather), max(r.FMA, o.FMA), max(r.FMA64, o.FMA64)
	for key, x := range o.Matrix {
		r.Matrix[key] = max(r.Matrix[key], x)
	}
	r.LaunchUS, r.LatencyUS = least(r.LaunchUS, o.LaunchUS), least(r.LatencyUS, o.LatencyUS)
}

// least is the smaller of two times, of which 0 is not known.
func least(x, y float64) float64 {
	if x == 0 || y == 0 {
		return max(x, y)
	}
	return min(x, y)
}

// Seen returns the rates with those raised that a multiplication exceeded: it took less time for its work than they
// allow. Fetching from cache is measured with data as large as SharedCache, so that only a B of that size tells of it.
func (r *Rates) Seen(v *spec.Variant, w Work, took time.Duration) *Rates {
	to := *r
	to.Stream, to.Matrix = slices.Clone(r.Stream), maps.Clone(r.Matrix)
	raise := func(rate *float64, n int64) {
		if *rate > 0 && took > 0 {
			*rate = min(mostRate, max(*rate, float64(n)/took.Seconds()))
		}
	}
	if i := r.band(w.Bytes); i >= 0 && took < at(w.Bytes, r.stream(w.Bytes)) {
		raise(&to.Stream[i].PerSecond, w.Bytes)
	}
	if w.B >= SharedCache {
		raise(&to.Gather, w.Gather)
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
	return &to
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
	i := len(r.Stream) - 1
	for i > 0 && r.Stream[i].Bytes > bytes {
		i--
	}
	return i
}

// stream returns the bandwidth with n bytes in use: the best that was measured from the next smaller size on.
// (With little data most of a copy's time is its launch.)
func (r *Rates) stream(bytes int64) float64 {
	var best float64
	for i, s := range r.Stream {
		if i+1 == len(r.Stream) || r.Stream[i+1].Bytes > bytes {
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
