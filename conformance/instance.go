// Instances: the inputs that a recipe makes, and what their outputs must be.

package conformance

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// instance is a recipe carried out. All numbers are elements of the recipe's type.
type instance struct {
	recipe        // with alpha and beta as they are multiplied by
	of     recipe // which was carried out
	a      *formats.CSR[float64]
	b      *formats.Dense[float64]
	c      *formats.Dense[float64] // before; nil when beta is 0
	bias   []float64               // of the epilogue, one for each row or column; nil if there is none
	// want is the outputs before their rounding to C's type, row after row; nil in class T2. Any
	// other of the alternatives is right too.
	want         []float64
	alternatives [][]float64
	bits         int  // class T3: the precision of the product
	lossless     bool // class T3: AutoP found it to lose nothing

	sum func() string // see digest
}

// build carries the recipe out.
func (r recipe) build() *instance {
	p := r.inputs()
	p.answer()
	return p
}

// inputs makes what is multiplied.
func (r recipe) inputs() *instance {
	p := &instance{recipe: r, of: r, b: formats.NewDense[float64](r.k, r.n)}
	p.a = &formats.CSR[float64]{Rows: r.m, Cols: r.k, RowPtr: make([]int64, 1, r.m+1)}
	for i := range r.m {
		p.a.ColIdx = append(p.a.ColIdx, patterns[r.pattern](r.seed, i, r.m, r.k)...)
		p.a.RowPtr = append(p.a.RowPtr, int64(len(p.a.ColIdx)))
	}
	p.a.Val = make([]float64, len(p.a.ColIdx))
	if r.beta != 0 {
		p.c = formats.NewDense[float64](r.m, r.n)
	}
	p.alpha, p.beta = p.rounded(r.alpha), p.rounded(r.beta)
	switch r.class {
	case General:
		p.general()
	case Reproducible:
		p.reproducible()
	case Subnormal:
		p.subnormal()
	default:
		p.exact()
	}
	p.sum = sync.OnceValue(p.hash)
	return p
}

// answer computes what the outputs must be.
func (p *instance) answer() {
	switch p.class {
	case General:
	case Reproducible:
		p.reproduce()
	case Subnormal:
		p.want = p.solve()
		p.alternatives = [][]float64{p.flushed().solve()}
	default:
		p.want = p.solve()
	}
}

// rounded returns x as a number of float64 if the recipe's type is that, else of float32.
func (p *instance) rounded(x float64) float64 {
	if p.typ == dtype.F64 {
		return x
	}
	return float64(float32(x))
}

// scalars makes alpha or beta what the kind says.
func (p *instance) scalars() {
	nan, inf := math.NaN(), math.Inf(-1)
	switch p.kind {
	case alphaNaN:
		p.alpha = nan
	case alphaInf:
		p.alpha = inf
	case betaNaN:
		p.beta = nan
	case betaInf:
		p.beta = inf
	}
}

// entries calls f for the entries of row i: their place in a.Val, row and column.
func (p *instance) entries(f func(e, i, j int)) {
	for i := range p.m {
		for e := p.a.RowPtr[i]; e < p.a.RowPtr[i+1]; e++ {
			f(int(e), i, int(p.a.ColIdx[e]))
		}
	}
}

// digest is the short SHA-256 of everything that a multiplication reads, in the recipe's element type: the
// pattern, the numbers of A, B and C, alpha and beta.
func (p *instance) digest() string { return p.sum() }

func (p *instance) hash() string {
	h := sha256.New()
	number := dtype.F32 // in which inputs are told
	if p.typ == dtype.F64 {
		number = dtype.F64
	}
	fmt.Fprintf(h, "A·B %v %d×%d×%d, %d entries, alpha %#x, beta %#x\n", p.typ, p.m, p.k, p.n, len(p.a.Val),
		pack(number, p.alpha), pack(number, p.beta))
	if p.p != 0 {
		fmt.Fprintf(h, "RFX %d\n", p.p)
	}
	if !p.epilogue.None() {
		fmt.Fprintf(h, "epilogue %v\n", p.epilogue)
	}
	buf := make([]byte, 0, 8*(len(p.a.RowPtr)+len(p.a.Val)+len(p.b.Data)))
	for _, x := range p.a.RowPtr {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(x))
	}
	for _, x := range p.a.ColIdx {
		buf = binary.LittleEndian.AppendUint32(buf, uint32(x))
	}
	lists := [][]float64{p.a.Val, p.b.Data}
	if p.c != nil {
		lists = append(lists, p.c.Data)
	}
	if p.bias != nil {
		lists = append(lists, p.bias)
	}
	for _, list := range lists {
		for _, x := range list {
			if number == dtype.F64 {
				buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(x))
			} else {
				buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(float32(x)))
			}
		}
	}
	h.Write(buf)
	return short(h)
}

// expect returns the digests of right outputs of type t, the IEEE one first; none in class T2.
func (p *instance) expect(t dtype.Type) []string {
	if p.want == nil {
		return nil
	}
	d := []string{round(t, p.m, p.n, p.want).digest()}
	for _, alt := range p.alternatives {
		d = append(d, round(t, p.m, p.n, alt).digest())
	}
	return d
}

// solve returns what the outputs are by definition: alpha·A·B + beta·C with the epilogue, rounded to float32 or float64
// once, or of the class that operands which are not finite make it.
func (p *instance) solve() []float64 {
	row := func(i int) []oracle.Dot { return oracle.Row(p.a, p.b, i) }
	if p.typ != dtype.F64 {
		single := p.single()
		row = func(i int) []oracle.Dot { return oracle.Row(single.A, single.B, i) }
	}
	out := make([]float64, p.m*p.n)
	for i := range p.m {
		for j, d := range row(i) {
			x := d.Value() * p.alpha
			if p.beta != 0 {
				x += p.beta * p.c.At(i, j)
			}
			out[i*p.n+j] = p.rounded(p.finished(x, i, j))
		}
	}
	return out
}
