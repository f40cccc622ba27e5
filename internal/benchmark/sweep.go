// Package benchmark measures sparse products: every matrix by every number of columns, on every device, in every
// format, precision and mode, and by other programs, the peers. Those who compute the same product take turns until
// the times of all are known well enough, so that clocks, temperature and other programs meet all alike. Reports are
// kept in files, compared and printed.
package benchmark

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

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

// Products are those of all lists. None but Limits may be empty.
type Products struct {
	Matrices   []string
	Columns    []int    // of B
	Backends   []string // devices as spmm.Open takes them, or groups (IsGroup)
	Formats    []string // "auto", Tuned, of spmm.Formats, FORMAT/VARIANT, Packings, Near or Rivals
	Precisions []dtype.Type
	Modes      []string // Fast, or Reproducible with a precision or without
	Ways       []Way
	Limits     []Limit
}

// count returns how many products there are, each computed by several.
func (p *Products) count() int { return len(p.Matrices) * len(p.Columns) * len(p.Precisions) }

// Sweep says what to measure and how.
type Sweep struct {
	Products []Products
	Peers    []string // programs that speak the protocol of Peer
	Facts    bool     // keep what predictions are made from, as Fit needs it
	Turns

	// Open reads or generates a matrix.
	Open func(ctx context.Context, name string) (*formats.CSR[float32], error)
	// Verify returns an error if c is not right; bits is the precision of reproducible mode, else 0.
	Verify func(ctx context.Context, p oracle.Problem, bits int, c *formats.Dense[float32]) error
	// Verify64 is the same for precision f64.
	Verify64 func(ctx context.Context, p oracle.ProblemOf[float64], c *formats.Dense[float64]) error
	// Fits returns an error where memory does not suffice for a product by n columns, of elements of that many bytes,
	// on the devices of a place.
	Fits func(on []spmm.Info, a *formats.CSR[float32], n, size int) error
	// Progress is told how much of the sweep is done.
	Progress func(done, total int64)
	// Measured, if not nil, is given the report so far whenever there are results of one more product.
	Measured func(Report)
}

// Total is the number that Progress counts to.
func (s *Sweep) Total() int64 {
	total := 0
	for i := range s.Products {
		total += s.Products[i].count()
	}
	return int64(total * units)
}

// units of progress that a product counts.
const units = 100

// Run measures. A matrix that cannot be read, and a device or peer that is not there, end it with an error: what was
// measured before is returned with it. Formats that refuse a matrix, and wrong answers, are results.
func (s *Sweep) Run(ctx context.Context) (*Report, error) {
	r := begin(ctx)
	err := s.run(ctx, r)
	r.end(ctx)
	return r, err
}

// backends are the names of all places.
func (s *Sweep) backends() []string {
	var all []string
	for _, p := range s.Products {
		for _, name := range p.Backends {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// f64 tells whether there are products in f64.
func (s *Sweep) f64() bool {
	return slices.ContainsFunc(s.Products, func(p Products) bool { return slices.Contains(p.Precisions, dtype.F64) })
}

// closeAll closes places, or peers.
func closeAll[C interface{ close() }](all []C) {
	for _, x := range all {
		x.close()
	}
}

func (s *Sweep) run(ctx context.Context, r *Report) error {
	e := &r.Environment
	places, err := openPlaces(ctx, s.backends(), s.f64())
	defer func() { closeAll(places) }()
	if err != nil {
		return err
	}
	for _, p := range places {
		d, err := p.describe(ctx, s.Facts)
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
	total, done := s.Total(), int64(0)
	open := s.opener()
	for i := range s.Products {
		for _, name := range s.Products[i].Matrices {
			a, err := open(ctx, name)
			if err != nil {
				return err
			}
			rounds := s.rounds(&s.Products[i], name, a)
			for _, p := range rounds {
				p.progress = func(part float64) { s.Progress(done+int64(part*units), total) }
				err := p.run(ctx, places, peers)
				r.Results = append(r.Results, results(p.all)...)
				s.measured(r)
				if err != nil {
					return fmt.Errorf("%s, N=%d, %v: %w", name, p.n, p.prec, err)
				}
				done += units
				s.Progress(done, total)
			}
		}
	}
	return nil
}

// opener returns Open, which keeps the last matrix for products in a row.
func (s *Sweep) opener() func(ctx context.Context, name string) (*formats.CSR[float32], error) {
	var last string
	var a *formats.CSR[float32]
	return func(ctx context.Context, name string) (*formats.CSR[float32], error) {
		var err error
		if a == nil || name != last {
			last = name
			a, err = s.Open(ctx, name)
		}
		return a, err
	}
}

// rounds are the products with a matrix.
func (s *Sweep) rounds(of *Products, name string, a *formats.CSR[float32]) []*round {
	var all []*round
	for _, n := range of.Columns {
		for _, prec := range of.Precisions {
			all = append(all, &round{Sweep: s, of: of, name: name, a: a, n: n, prec: prec})
		}
	}
	return all
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
	of       *Products
	name     string
	a        *formats.CSR[float32]
	b        *formats.Dense[float32]
	n        int // columns of B
	prec     dtype.Type
	making   sync.Mutex
	made     map[any]any // operands in other types: see once
	all      []*contest
	progress func(part float64)
}

// run prepares, verifies and measures all.
func (r *round) run(ctx context.Context, places []*place, peers []*peer) error {
	defer func() {
		for _, c := range r.all {
			c.drop()
		}
		r.b, r.made = nil, nil
	}()
	r.b, r.made = gen.Dense(r.a.Cols, r.n, 1, gen.Values{}), map[any]any{}
	for _, at := range places {
		if !slices.Contains(r.of.Backends, at.asked) {
			continue
		}
		if err := r.Fits(at.infos(), r.a, r.n, max(4, r.prec.Storage().Size())); err != nil {
			return err
		}
		if err := r.enterAll(ctx, at); err != nil {
			return err
		}
	}
	for _, p := range peers {
		algorithms, err := p.prepare(ctx, r.a, r.b, r.prec)
		if err != nil {
			if _, err := r.add(r.named(p.name, "-"), nil, err); err != nil {
				return err
			}
			continue
		}
		for _, x := range algorithms {
			if _, err := r.add(r.named(p.name, x.name), x, nil); err != nil {
				return err
			}
		}
	}
	if err := r.checkAll(ctx); err != nil {
		return err
	}
	if err := r.measure(ctx, r.all, r.progress); err != nil {
		return err
	}
	ask(r.all, r.of.Limits)
	return nil
}

// checkAll verifies all: plans several at a time, as most of that is loading their kernels, then peers.
func (r *round) checkAll(ctx context.Context) error {
	const atOnce = 8
	check := func(ctx context.Context, c *contest) error {
		if err := c.entrant.(checked).check(ctx, r); err != nil {
			return c.fail(err)
		}
		return nil
	}
	g, within := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	var peers []*contest
	for _, c := range living(r.all) {
		if _, is := c.entrant.(*planned); is {
			g.Go(func() error { return check(within, c) })
		} else {
			peers = append(peers, c)
		}
	}
	err := g.Wait()
	for _, c := range peers {
		if err == nil {
			err = check(ctx, c)
		}
	}
	return err
}

// enterAll adds all who compute the product at a place.
func (r *round) enterAll(ctx context.Context, at *place) error {
	fs, err := r.formats(ctx, at)
	if err != nil {
		return err
	}
	for _, f := range fs {
		for _, mode := range r.of.Modes {
			for _, way := range r.of.Ways {
				if !way.takes(r.n) {
					continue
				}
				o, err := withMode(spmm.Options{Precision: r.prec}, mode)
				if err != nil {
					return err
				}
				if o.Format, o.Variant, _ = strings.Cut(f.name, "/"); f.name == Tuned {
					o.Format, o.Tune = "auto", true
				}
				c := r.named(at.name, f.name)
				c.Mode, c.Way = mode, way.String()
				var e entrant
				p, err := enter(ctx, at, r, way.options(o, r.n), way)
				if err == nil {
					e = p
				}
				x, err := r.add(c, e, err)
				if err != nil {
					return err
				}
				x.Predicted = f.predicted
			}
		}
	}
	return nil
}

// named is a case of the product, in fast mode.
func (r *round) named(backend, format string) Case {
	return Case{Matrix: r.name, N: r.n, Precision: r.prec.String(), Backend: backend, Format: format, Mode: Fast}
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
func (r *round) add(of Case, e entrant, err error) (*contest, error) {
	c := &contest{entrant: e, Result: Result{Case: of, Rows: r.a.Rows, Cols: r.a.Cols, NNZ: r.a.NNZ()}}
	r.all = append(r.all, c)
	if err != nil {
		return c, c.fail(err)
	}
	return c, nil
}
