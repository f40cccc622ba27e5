// Negative controls: five faults, each put into every format, in fast and in reproducible mode, on every device there
// is. The suite must notice each of them everywhere. The faults here are in a kernel's arguments and in its results:
// what it gives; mutation_test.go breaks kernels themselves.

package conformance

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// controls are the faults, and what the suite must say of them.
var controls = []struct {
	name, want string
	fault      Options
}{
	{"one wrong rounding", "1 of", Options{after: func(o *outputs) { nudge(o) }}},
	{"one dropped nonzero", wrongOutputs, Options{spoil: spoilA(func(a *formats.CSR[float64]) {
		for i := a.Rows - 1; i >= 0; i-- {
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				if a.Val[e] != 0 {
					a.Val[e] = 0 // an entry that is gone is refused by formats that store every element
					return
				}
			}
		}
	})}},
	{"one transposed tile", wrongOutputs, Options{spoil: spoilA(transposeTile)}},
	{"one stale row of B", wrongOutputs, Options{spoil: func(p *instance) *instance {
		x := *p
		b := *p.b
		b.Data = slices.Clone(b.Data)
		x.b = &b
		const row, stage = 16, 16 // what stood there one stage before
		for j := range b.Cols {
			b.Set(row, j, b.At(row-stage, j))
		}
		return &x
	}}},
	{"one store out of bounds", "behind a buffer", Options{stray: true}},
}

// nudge rounds the first output that can be to its neighbour.
func nudge(o *outputs) {
	for i, b := range o.bits {
		if x := float64(unpack(o.typ, b)); x != 0 && !math.IsInf(x, 0) && !math.IsNaN(x) {
			o.bits[i] ^= 1
			return
		}
	}
}

// spoilA is a fault of the matrix.
func spoilA(f func(a *formats.CSR[float64])) func(p *instance) *instance {
	return func(p *instance) *instance {
		x := *p
		a := *p.a
		a.RowPtr, a.ColIdx, a.Val = slices.Clone(a.RowPtr), slices.Clone(a.ColIdx), slices.Clone(a.Val)
		f(&a)
		x.a = &a
		return &x
	}
}

// transposeTile transposes the first 8×8 entries.
func transposeTile(a *formats.CSR[float64]) {
	const size = 8
	type entry struct {
		col int32
		val float64
	}
	rows := make([][]entry, a.Rows)
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			r, c := i, int(a.ColIdx[e])
			if r < size && c < size {
				r, c = c, r
			}
			rows[r] = append(rows[r], entry{int32(c), a.Val[e]})
		}
	}
	a.ColIdx, a.Val = a.ColIdx[:0], a.Val[:0]
	for i, row := range rows {
		slices.SortFunc(row, func(x, y entry) int { return int(x.col - y.col) })
		for _, e := range row {
			a.ColIdx, a.Val = append(a.ColIdx, e.col), append(a.Val, e.val)
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
}

// multiplied returns the formats that the device has a variant for.
func multiplied(dev backend.Device) []*spec.Format {
	return slices.DeleteFunc(shaders.Formats(), func(k *spec.Format) bool {
		return !slices.ContainsFunc(k.Variants, func(v *spec.Variant) bool { return v.Met(dev.Caps()) })
	})
}

func TestNegativeControls(t *testing.T) {
	cases := regexp.MustCompile(`^[a-z0-9]+(/v8)?/f16/(T1±/m67k129n7/(eighth|dense)/alpha4$|T1±/m67k129n33/(eighth|dense)/host|T3/m67k129n33/eighth/spans/p(23|47))`)
	devices(t, func(t *testing.T, dev backend.Device) {
		cache := newKernelCache()
		defer cache.close()
		for _, c := range controls {
			t.Run(c.name, func(t *testing.T) {
				o := c.fault
				o.Filter, o.instances, o.compiled = cases, problems, cache
				m, err := Run(t.Context(), dev, o)
				if err != nil {
					t.Fatal(err)
				}
				caught := map[string]int{}
				for i := range m.Cases {
					r := &m.Cases[i]
					if r.Status == Fail && strings.Contains(r.Error, c.want) {
						caught[r.kernel()+" "+Class(r.ID)]++
					} else if r.Status != Unsupported {
						t.Errorf("%s with %s: %s %s", r.ID, r.Variant, r.Status, r.Error)
					}
				}
				for _, k := range multiplied(dev) {
					if caught[k.Name+" "+MixedSign] == 0 || caught[k.Name+" "+Reproducible] == 0 {
						t.Errorf("%s: caught in %v", k.Name, caught)
					}
				}
			})
		}
	})
}

// epilogueControls are faults of epilogues.
var epilogueControls = []struct {
	name  string
	spoil func(p *instance)
}{
	{"the bias is left out", func(p *instance) { p.epilogue.Bias, p.bias = spec.NoBias, nil }},
	{"one element of the bias is its neighbour's", func(p *instance) {
		p.bias = slices.Clone(p.bias)
		p.bias[1] = p.bias[0]
	}},
	{"ReLU is left out", func(p *instance) { p.epilogue.Activation = spec.NoActivation }},
	{"ReLU comes unasked", func(p *instance) { p.epilogue.Activation = spec.ReLU }},
}

// The faults of epilogues are put into cases that they touch: all of these must fail.
func TestEpilogueControls(t *testing.T) {
	const row, col = `m67k129n33/eighth/spans/bias-row/`, `m29k60n34/vec8/normal/alpha-0.3/beta1.7/bias-col/relu/`
	cases := []string{row + "|" + col, row + "|" + col, col, row}
	devices(t, func(t *testing.T, dev backend.Device) {
		for i, c := range epilogueControls {
			t.Run(c.name, func(t *testing.T) {
				o := Options{Filter: regexp.MustCompile(`^(csr|rfx)/f16/T3/(` + cases[i] + `)p(15|23|auto)`)}
				o.spoil = func(p *instance) *instance {
					x := *p
					c.spoil(&x)
					return &x
				}
				m, err := Run(t.Context(), dev, o)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range m.Cases {
					if r.Status != Fail || !strings.Contains(r.Error, wrongOutputs) {
						t.Errorf("%s with %s: %s %s", r.ID, r.Variant, r.Status, r.Error)
					}
				}
			})
		}
	})
}

// TestControlsAreFaults: without a fault the same cases pass.
func TestControlsAreFaults(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		m, err := Run(t.Context(), dev, Options{Filter: regexp.MustCompile(`^[a-z0-9]+(/v8)?/f16/(T1±/m67k129n7/(eighth|dense)/alpha4$|T3/m67k129n33/eighth/spans/p23)`)})
		if err != nil {
			t.Fatal(err)
		}
		if m.Summary[Fail] > 0 || m.Summary[Pass] < 2*len(multiplied(dev)) {
			t.Errorf("summary %v", m.Summary)
		}
	})
}
