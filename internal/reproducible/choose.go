// Choosing between rows, panels of rows, strips, pairs, digits, and residues, dense or 2:4.

package reproducible

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// MayTakeRows tells whether rows may be multiplied where panels of a kind are refused: where the work does not name
// panels, or where the panels that it names suit one precision and not another.
func (r *Executor) MayTakeRows(w *work.Work, kind kernel.Kind) bool {
	return kind != kernel.Rows && w.Variant == "" && (r.auto != nil || w.Format == "")
}

// Choose decides between rows, panels of rows, strips, pairs, digits and residues, and says why. Products have the same
// bits whichever it is.
func (r *Executor) Choose(ctx context.Context, w *work.Work) (kind kernel.Kind, why string, err error) {
	if err := r.bits.Check(); err != nil {
		return 0, "", err
	}
	if named := r.named(w); named != nil {
		alike := r.candidates(named.kind.Alike()...)
		switch {
		case w.Variant != "":
		case len(alike) > 1:
			return r.fastest(ctx, alike, w.Cols)
		case named.kind == kernel.Rows && kernel.KindOf(w.Format) != kernel.Rows:
			return kernel.Rows, r.noPanels(), nil
		}
		return named.kind, named.kind.Why(), nil
	}
	candidates := r.candidates(slices.DeleteFunc(kernel.Kinds(), func(k kernel.Kind) bool { return k == kernel.Shuffled })...)
	switch {
	case len(candidates) == 0:
		_, err := kernel.Variant(r.dev.Caps(), r.bits, kernel.Rows)
		return 0, "", err
	case len(candidates) == 1:
		return kernel.Rows, r.noPanels(), nil
	case r.auto != nil && (r.mustCut() || w.Budget != nil):
		return kernel.Rows, "the matrix must be cut for any p", nil
	}
	return r.fastest(ctx, candidates, w.Cols)
}

// noPanels says why rows are taken.
func (r *Executor) noPanels() string {
	if r.auto != nil {
		return "the device has no kernel for panels"
	}
	return fmt.Sprintf("the device has no kernel for panels at p = %d", r.bits)
}

// candidate is a kind, and its variant on the device.
type candidate struct {
	kind    kernel.Kind
	variant *spec.Variant
}

// candidates returns those of the kinds that the device has kernels for.
func (r *Executor) candidates(kinds ...kernel.Kind) []candidate {
	var cs []candidate
	for _, k := range kinds {
		if v, err := kernel.Variant(r.dev.Caps(), r.bits, k); err == nil && r.fits(k) == nil {
			cs = append(cs, candidate{k, v})
		}
	}
	return cs
}

// named returns what the work's format or variant asks for, or what the device has in its place: panels where it cannot
// multiply residues or strips, rows where it has no panels. It is nil where neither is named.
func (r *Executor) named(w *work.Work) *candidate {
	for _, c := range r.candidates(kernel.Kinds()...) {
		if w.Variant == c.variant.Name {
			return &c
		}
	}
	if w.Format == "" {
		return nil
	}
	for _, k := range []kernel.Kind{kernel.KindOf(w.Format), kernel.Panels, kernel.Stationary, kernel.Rows} {
		if cs := r.candidates(k); len(cs) > 0 {
			return &cs[0]
		}
	}
	return nil
}

// fits refuses strips, with pairs or not, that are too long, and residues that exceed a buffer or half of the memory
// that may be used, with AutoP at the largest precision.
func (r *Executor) fits(kind kernel.Kind) error {
	_, cols := r.source.Dims()
	switch kind {
	case kernel.InStrips, kernel.InPairs:
		return kernel.FitsStrips(cols)
	case kernel.Stationary:
		return r.fitsStationary()
	case kernel.Direct:
		if r.source.Type() != dtype.F32 {
			return fmt.Errorf("B of %v is quantised before: %w", r.source.Type(), backend.ErrUnsupported)
		}
		return nil
	case kernel.Rows, kernel.Panels, kernel.Shuffled:
		return nil
	}
	bits := r.bits
	if r.auto != nil {
		bits = rfx.P47
	}
	s, err := r.residueStats(kind, 0, bits)
	if err == nil && s.StoredBytes > r.most {
		err = fmt.Errorf("residues take %d bytes at p = %d, and may take %d on %v: %w", s.StoredBytes, bits, r.most,
			r.dev.Info(), backend.ErrUnsupported)
	}
	return err
}

// fitsStationary refuses a B that does not fit shared memory, with AutoP at any precision.
func (r *Executor) fitsStationary() error {
	_, cols := r.source.Dims()
	at := []rfx.P{r.bits}
	if r.auto != nil {
		at = rfx.All[:]
	}
	for _, p := range at {
		v, err := kernel.Variant(r.dev.Caps(), p, kernel.Stationary)
		if err == nil {
			err = kernel.FitsStationary(v, cols, r.source.Type())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fastest returns the candidate that is predicted to take the least time for n columns, and how long each takes.
func (r *Executor) fastest(ctx context.Context, candidates []candidate, n int) (kernel.Kind, string, error) {
	times, err := r.predict(ctx, candidates, n)
	if err != nil {
		return 0, "", err
	}
	best := 0
	for i, t := range times {
		if t < times[best] {
			best = i
		}
	}
	var others []string
	for i, c := range candidates {
		if i != best {
			others = append(others, fmt.Sprintf("%v %s", c.kind, choose.Short(times[i])))
		}
	}
	return candidates[best].kind, fmt.Sprintf("%v are predicted to take %s, and %s", candidates[best].kind,
		choose.Short(times[best]), strings.Join(others, ", ")), nil
}

// addingUp is how many launches' time adding up the sums of segments takes, a share of the rows being in segments: the
// launch waits for all rows, and reads what they wrote. On an H200 it takes 3 µs for graphs, few of whose rows are in
// segments, and 5 to 10 for 4096² with 10 % of the entries, where all are.
func addingUp(share float64) float64 { return 1 + share }

// predict returns what multiplications by n columns are predicted to take by each candidate, B being in fixed point,
// from a sample of the matrix. Every row of B is fetched anew for each entry or vector that meets it: a core's
// cache holds few in fixed point.
func (r *Executor) predict(ctx context.Context, candidates []candidate, n int) ([]time.Duration, error) {
	rates, err := choose.RatesOf(ctx, r.dev)
	if err != nil {
		return nil, err
	}
	sample := work.Sample(r.source, work.LargeSample)
	var times []time.Duration
	for _, c := range candidates {
		stats, items, inSegments, err := r.stats(c, sample)
		if err != nil {
			return nil, err
		}
		t := r.time(rates, c, stats, items, n)
		if c.kind.ByRows() {
			rowPtr, _ := r.source.Pattern()
			inSegments = float64(kernel.InSegments(rowPtr, c.variant)) / float64(max(1, len(rowPtr)-1))
		}
		if inSegments > 0 {
			t += time.Duration(addingUp(inSegments) * float64(choose.ModelOf(r.dev).LaunchTime()))
		}
		times = append(times, t)
	}
	return times, nil
}

// time predicts how long a candidate takes to multiply by n columns, its packing having these stats and items.
func (r *Executor) time(rates *model.Rates, c candidate, stats formats.Stats, items int64, n int) time.Duration {
	rows, cols := r.source.Dims()
	v := shaders.Reproducible.Runs(c.variant, nil, spec.Problem{N: n})
	g, _ := choose.ModelOf(r.dev).Gather(shaders.Reproducible.Name, v.Name)
	n = g.Width(v, n)
	typ := r.source.Type()
	w := inFixedPoint(model.NewWork(rows, cols, n, typ, stats, stats.Gathers, dtype.F32), v, typ, cols, n, stats.Gathers)
	w.Gather = max(int64(g.Slower*float64(w.Gather)), stats.Gathers*int64(n)*int64(g.Bytes))
	w.FLOPs = int64(cmp.Or(g.Arithmetic, 1) * float64(w.FLOPs))
	w.Bytes = int64(cmp.Or(g.Memory, 1) * float64(w.Bytes))
	if v.Need.Dot4 && r.dev.Caps().Dot4Emulated {
		w.FLOPs *= emulatedDot
	}
	if c.kind.InPlanes() {
		of := stats.Gathers * int64(n) * int64(r.source.Type().Size()) // of a remainder, from B as it is
		w.Gather = int64(max(1, g.Slower) * float64(of))
	}
	if c.kind == kernel.Residues || c.kind == kernel.SparseResidues {
		w.Bytes += 2 * int64(rows) * int64(n) * kernel.Products(v, cols) // residues of sums
	}
	b, start := rates.Bound(v, w), time.Duration(g.Start*float64(time.Microsecond))
	if c.kind == kernel.InStrips || c.kind == kernel.InPairs || c.kind == kernel.Digits { // A is loaded ahead
		return max(b.Memory, b.Gather+b.Compute) + start
	}
	each := g.ItemNS * float64(kernel.PrecisionOf(v).Bytes())
	t := b.Memory + b.Gather + b.Compute + time.Duration(each*float64(items))
	tiles := time.Duration(stats.Longest / rfx.Tile)
	switch c.kind {
	case kernel.Stationary:
		t = max(t, tiles*time.Duration(kernel.PrecisionOf(v).Bytes())*panelTile)
	case kernel.Panels, kernel.Shuffled:
		t = max(t, tiles*segmentTile)
	}
	return t + start
}

// emulatedDot is the instructions in place of a dot product's one, by count: eight bytes extended by their signs, and
// four multiply-adds.
const emulatedDot = 12

// How long a warp takes for a digit of a tile of a panel with B in shared memory, where it waits for loads, and a
// workgroup for a tile of a panel or segment. On an H200 tiles of the former took 0.2 to 0.7 µs, and graphs whose
// longest segments have 32 tiles 42 to 45 µs.
const (
	panelTile   = 100 * time.Nanosecond
	segmentTile = time.Microsecond
)

// residueStats tells what packing the matrix as residues or digits makes, a share of whose entries has no place in a
// 2:4 matrix.
func (r *Executor) residueStats(kind kernel.Kind, remaining float64, bits rfx.P) (formats.Stats, error) {
	rows, cols := r.source.Dims()
	all := r.source.NNZ()
	switch kind {
	case kernel.Residues:
		return kernel.ResidueStats(rows, cols, all, bits)
	case kernel.Digits:
		return kernel.DigitStats(rows, cols, all, bits)
	}
	return kernel.SparseResidueStats(rows, cols, all, int64(remaining*float64(all)), bits)
}

// stats tells what packing the matrix for a candidate makes, its work items, and the share of rows in panels that
// are in segments: of dense residues and digits exactly, of others from a sample.
func (r *Executor) stats(
	c candidate, sample formats.Sparse,
) (s formats.Stats, items int64, inSegments float64, err error) {
	if c.kind.InPlanes() {
		s, err = r.residueStats(c.kind, float64(kernel.Remaining(sample))/float64(max(1, sample.NNZ())), r.bits)
		return s, 0, 0, err
	}
	e, err := shaders.Reproducible.Encode(sample, c.variant)
	if err != nil {
		return s, 0, 0, err
	}
	s, items = work.Scale(e, sample.NNZ(), r.source.NNZ())
	if m, ok := e.Format.(kernel.Split); ok && m.V > 0 {
		inSegments = float64(m.Rows) / float64(max(1, e.Rows))
	}
	return s, items, inSegments, nil
}

// inFixedPoint adds to what a multiplication by n columns of type t takes in a variant. All of B is read for its ranges.
// It is written and read in fixed point, unless the kernel quantises it, and its rows are fetched so. Every pair of
// digits is multiplied, or every residue.
func inFixedPoint(w model.Work, v *spec.Variant, t dtype.Type, k, n int, fetched int64) model.Work {
	all := int64(k) * int64(n) * int64(t.Storage().Size())
	w.Bytes, w.B = w.Bytes+all-w.B, all
	w.Bytes += 2 * int64(k) * 4 * int64(kernel.Layout(v, k, n).Row())
	w.Gather = fetched * kernel.Fetched(v, k, n)
	w.FLOPs *= kernel.Instructions(v, k)
	return w
}
