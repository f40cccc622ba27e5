// Package benchmark measures sparse products: every matrix by every number of columns, on every device, in every format,
// precision and mode, and by other programs, the peers. Those who compute the same product take turns until the times of
// all are known well enough, so that clocks, temperature and other programs meet all alike. Reports are kept in files,
// compared and printed.
package benchmark

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// Names of modes in a Case. Reproducible with a number behind it, as in "reproducible 23", keeps that many bits
// (spmm.Options.P); alone it is with spmm.AutoP.
const (
	Fast         = "fast"
	Reproducible = "reproducible"
)

// Sweep says what to measure: the product of all lists, of which none may be empty.
type Sweep struct {
	Matrices   []string
	Columns    []int    // of B
	Backends   []string // devices as spmm.Open takes them, or groups (IsGroup)
	Formats    []string // "auto" or of spmm.Formats
	Precisions []dtype.Type
	Modes      []string // Fast, or Reproducible with a precision or without
	Peers      []string // programs that speak the protocol of Peer

	// Interval is the half length of the median's interval, over the median, at which its time counts as known: 0.02 is ±2 %.
	Interval float64
	// Limit bounds the time that is spent on each entrant of a product, on average.
	Limit time.Duration

	// Open reads or generates a matrix.
	Open func(ctx context.Context, name string) (*formats.CSR[float32], error)
	// Verify returns an error if c is not right; bits is the precision of reproducible mode, else 0.
	Verify func(ctx context.Context, p oracle.Problem, bits int, c *formats.Dense[float32]) error
	// Verify64 is the same for precision f64.
	Verify64 func(ctx context.Context, p oracle.ProblemOf[float64], c *formats.Dense[float64]) error
	// Fits returns an error where memory does not suffice for a product by n columns, of elements of that many bytes, on the devices of a place.
	Fits func(on []spmm.Info, a *formats.CSR[float32], n, size int) error
	// Progress is told how much of the sweep is done.
	Progress func(done, total int64)
	// Measured, if not nil, is given the report so far whenever there are results of one more product.
	Measured func(Report)
}

// Each product counts so many units of progress.
const units = 100

// Run measures. A matrix that cannot be read, and a device or peer that is not there, end it with an error: what was
// measured before is returned with it. Formats that refuse a matrix, and wrong answers, are results.
func (s *Sweep) Run(ctx context.Context) (*Report, error) {
	r := &Report{Version: ReportVersion}
	e := &r.Environment
	err := s.run(ctx, r)
	e.After = readState(ctx)
	e.Seconds = time.Since(e.Start).Seconds()
	return r, err
}

// closeAll closes places, or peers.
func closeAll[C interface{ close() }](all []C) {
	for _, x := range all {
		x.close()
	}
}

func (s *Sweep) run(ctx context.Context, r *Report) error {
	e := &r.Environment
	e.System, e.Processor, e.Threads = runtime.GOOS+"/"+runtime.GOARCH, processor(), runtime.GOMAXPROCS(0)
	e.Start = time.Now().UTC().Truncate(time.Millisecond)
	e.Before = readState(ctx)
	places, err := s.openPlaces(ctx)
	defer func() { closeAll(places) }()
	if err != nil {
		return err
	}
	for _, p := range places {
		d, err := p.describe(ctx)
		if err != nil {
			return err
		}
		e.Devices = append(e.Devices, d)
	}
	peers, err := startPeers(ctx, s.Peers)
	defer func() { closeAll(peers) }()
	if err != nil {
		return err
	}
	for _, p := range peers {
		e.Peers = append(e.Peers, p.description)
	}
	total, done := int64(len(s.Matrices)*len(s.Columns)*len(s.Precisions)*units), int64(0)
	for _, name := range s.Matrices {
		a, err := s.Open(ctx, name)
		if err != nil {
			return err
		}
		for _, n := range s.Columns {
			for _, prec := range s.Precisions {
				p := &round{Sweep: s, name: name, a: a, n: n, prec: prec, progress: func(part float64) { s.Progress(done+int64(part*units), total) }}
				err := p.run(ctx, places, peers)
				r.Results = append(r.Results, p.results()...)
				s.measured(r)
				if err != nil {
					return fmt.Errorf("%s, N=%d, %v: %w", name, n, prec, err)
				}
				done += units
				s.Progress(done, total)
			}
		}
	}
	return nil
}

// measured passes on what there is, if somebody wants it.
func (s *Sweep) measured(r *Report) {
	if s.Measured == nil || len(r.Results) == 0 {
		return
	}
	so := *r
	so.Results = slices.Clone(r.Results)
	so.Environment.Seconds = time.Since(r.Environment.Start).Seconds()
	s.Measured(so)
}

// round is one product, which several compute in turn.
type round struct {
	*Sweep
	name     string
	a        *formats.CSR[float32]
	b        *formats.Dense[float32]
	n        int
	prec     dtype.Type
	all      []*contest
	progress func(part float64)
}

// contest is an entrant with what it has reached.
type contest struct {
	entrant // nil if Error tells why
	Result
}

// run prepares, verifies and measures all.
func (r *round) run(ctx context.Context, places []*place, peers []*peer) error {
	defer func() {
		for _, c := range r.all {
			c.drop()
		}
	}()
	for _, at := range places {
		if err := r.Fits(at.infos(), r.a, r.n, max(4, r.prec.Storage().Size())); err != nil {
			return err
		}
	}
	r.b = gen.Dense(r.a.Cols, r.n, 1, gen.Values{})
	for _, at := range places {
		for _, format := range r.Formats {
			for _, mode := range r.Modes {
				name, kernel, _ := strings.Cut(format, "/")
				o, err := withMode(spmm.Options{Format: name, Variant: kernel, Precision: r.prec, Cols: r.n}, mode)
				if err != nil {
					return err
				}
				p, err := enter(ctx, at, r.a, r.b, o)
				if err := r.add(at.name, format, mode, p, p == nil, err); err != nil {
					return err
				}
			}
		}
	}
	for _, p := range peers {
		algorithms, err := p.prepare(ctx, r.a, r.b, r.prec)
		if err != nil {
			if err := r.add(p.name, "-", Fast, nil, true, err); err != nil {
				return err
			}
			continue
		}
		for _, x := range algorithms {
			if err := r.add(p.name, x.name, Fast, x, false, nil); err != nil {
				return err
			}
		}
	}
	for _, c := range r.all {
		if c.entrant == nil {
			continue
		}
		if err := c.check(ctx, r); err != nil {
			if err := c.fail(err); err != nil {
				return err
			}
		}
	}
	return r.measure(ctx)
}

// withMode is the options with a mode.
func withMode(o spmm.Options, mode string) (spmm.Options, error) {
	if mode == Fast {
		return o, nil
	}
	o.Mode, o.P = spmm.Reproducible, spmm.AutoP
	if mode == Reproducible {
		return o, nil
	}
	var err error
	o.P, err = strconv.Atoi(strings.TrimPrefix(mode, Reproducible+" "))
	if err != nil {
		err = fmt.Errorf("mode %q: want %s, %s, or that with a precision behind it", mode, Fast, Reproducible)
	}
	return o, err
}

// add adds an entrant, or why there is none.
func (r *round) add(backend, format, mode string, e entrant, none bool, err error) error {
	c := &contest{Result: Result{
		Case: Case{Matrix: r.name, N: r.n, Precision: r.prec.String(), Backend: backend, Format: format, Mode: mode},
		Rows: r.a.Rows, Cols: r.a.Cols, NNZ: r.a.NNZ(),
	}}
	if !none {
		c.entrant = e
	}
	r.all = append(r.all, c)
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// fail keeps why there is no time, and returns errors that end the sweep.
func (c *contest) fail(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, spmm.ErrDeviceLost) {
		return err
	}
	c.drop()
	c.Error, c.Samples, c.Batch, c.Clock = err.Error(), nil, 0, ""
	c.Wrong = errors.As(err, new(wrongError))
	return nil
}

func (c *contest) drop() {
	if c.entrant != nil {
		c.entrant.close()
		c.entrant = nil
	}
}

const (
	warmups      = 3
	leastSamples = 7 // fewer have no interval worth the name
	mostSamples  = 1000
	mostBatch    = 50
	leastBatch   = time.Millisecond // a batch lasts as long, or is of mostBatch products
)

// measure has all take turns until every median is known well enough, or the limit is reached. Rests do not count towards it.
func (r *round) measure(ctx context.Context) error {
	for _, c := range r.all {
		if err := c.warm(ctx); err != nil {
			return err
		}
	}
	live := living(r.all)
	spent, limit := time.Duration(0), r.Limit*time.Duration(len(live))
	for i := 0; len(live) > 0 && i < mostSamples; i++ {
		if i >= leastSamples && (r.settled(live) || spent > limit) {
			break
		}
		for k := range live {
			c := live[(i+k)%len(live)] // nobody is always first
			took, err := c.sample(ctx)
			if err != nil {
				return err
			}
			spent += took
		}
		r.progress(min(1, max(float64(i)/mostSamples, spent.Seconds()/max(1e-9, limit.Seconds()))))
	}
	for _, c := range living(live) {
		c.Median = Median(c.Samples)
		c.Low, c.High = Interval(c.Samples)
		c.Settled = Spread(c.Samples) <= r.Interval
		if err := c.describe(ctx, &c.Result); err != nil {
			return err
		}
	}
	return nil
}

// warm computes the product some times, and finds how many of them last long enough to be timed.
func (c *contest) warm(ctx context.Context) error {
	c.Batch = 1
	least := time.Duration(math.MaxInt64)
	for i := 0; i < warmups && c.entrant != nil; i++ {
		took, _, err := c.again(ctx, c.Batch)
		if err != nil {
			return c.fail(err)
		}
		c.rest(ctx)
		least = min(least, max(1, took))
		c.Batch = int(min(mostBatch, 1+leastBatch/least))
	}
	return nil
}

// sample computes a batch and keeps its time, unless the entrant has failed before. It returns how long it took in all, without the rest.
func (c *contest) sample(ctx context.Context) (time.Duration, error) {
	if c.entrant == nil {
		return 0, nil
	}
	start := time.Now()
	took, clock, err := c.again(ctx, c.Batch)
	spent := time.Since(start)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return spent, c.fail(err)
	}
	c.rest(ctx)
	c.Clock = clock
	c.Samples = append(c.Samples, max(micros(took), 1e-3))
	return spent, nil
}

// living are those that have not failed.
func living(all []*contest) []*contest {
	return slices.DeleteFunc(slices.Clone(all), func(c *contest) bool { return c.entrant == nil })
}

func (r *round) settled(live []*contest) bool {
	return !slices.ContainsFunc(living(live), func(c *contest) bool { return Spread(c.Samples) > r.Interval })
}

func (r *round) results() []Result {
	var out []Result
	for _, c := range r.all {
		if c.Error != "" || c.Median > 0 { // else the round was interrupted
			out = append(out, c.Result)
		}
	}
	return out
}
