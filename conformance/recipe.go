// A recipe names a problem and is all it takes to make it, on any machine.

package conformance

import (
	"fmt"
	"strconv"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The classes of problems; see the package's documentation.
const (
	SameSign     = "T1+"       // exact, products of one sign
	MixedSign    = "T1±"       // exact, products of both signs
	NonFinite    = "nonfinite" // exact where finite, infinities and NaN among the data
	Subnormal    = "subnormal" // exact, or exact with subnormal operands taken for zero
	General      = "T2"        // any numbers, held to the bound
	Reproducible = "T3"        // any numbers, in reproducible mode
)

// recipe is one problem C = act(alpha·A·B + beta·C + bias).
type recipe struct {
	class       string
	typ         dtype.Type // the data are elements of this type (TF32: of 11 bits, but in T2)
	quant       dtype.Type // S8 or E4M3: A is quantised, in exact classes without a loss; Invalid: it is not
	m, k, n     int
	pattern     string
	alpha, beta float64 // in exact classes powers of two, or their negatives; beta may be 0
	epilogue    spec.Epilogue
	kind        string // which numbers; see exact.go and general.go
	p           int    // of class T3: the requested precision, spmm.AutoP or one of rfx.All; else 0
	seed        uint64
}

// Kinds of numbers.
const (
	wide   = ""       // T1: as many bits as are exact in f32, rows and columns scaled
	narrow = "narrow" // T1: outputs within the range of f16, with more bits than it has
	over   = "over"   // T1: outputs beyond the range of f16 too
	zeros  = "zeros"  // T1: as wide, a third of the entries of A and some of B are zeros
	inB    = "inB"    // subnormal: the operands of B, not of A
	normal = "normal" // T2: about normally distributed
	spans  = "spans"  // T2: magnitudes from 2⁻⁸ to 2⁸
	cancel = "cancel" // T2: large terms that cancel, small ones that remain
	low    = "low"    // T2: rows of A that are subnormal, in part or all
	lowB   = "lowB"   // T2: columns of B that are
	beside = "beside" // T2: small numbers, and in half of the rows zeros of A where elements of B are large
	odd    = "odd"    // T3: subnormal numbers and zeros of both signs among normal ones
	wild   = "wild"   // T3: the same, and infinities and NaN; T2: as normal, and infinities and NaN
	ties   = "ties"   // T3: sums very close to the middle between two numbers of f32, in more bits than f64 has
	tiny   = "tiny"   // T3: sums that are subnormal in f32
	rising = "rising" // T3: the largest elements of rows of A and columns of B are their last ones
	units  = "units"  // T3: A of ones and twos, B as in normal: how many bits are needed is B's affair
	most   = "most"   // T3: the largest integers that elements are quantised to
	halves = "halves" // T3: sums of 24 bits, to which a bias adds half a unit in the last place, or a hair more or less
)

// Kinds of NonFinite and T3 whose data are like those of wide and normal, and alpha or beta is not finite. (A recipe
// itself has finite ones: it is compared with others.)
const (
	alphaNaN = "alphaNaN"
	alphaInf = "alphaInf"
	betaNaN  = "betaNaN"
	betaInf  = "betaInf"
)

// name is the recipe as case names and manifests give it.
func (r recipe) name() string {
	s := fmt.Sprintf("%v/%s/m%dk%dn%d/%s", r.typ, r.class, r.m, r.k, r.n, r.pattern)
	if r.kind != "" {
		s += "/" + r.kind
	}
	if r.alpha != 1 {
		s += "/alpha" + number(r.alpha)
	}
	if r.beta != 0 {
		s += "/beta" + number(r.beta)
	}
	if !r.epilogue.None() {
		s += "/" + r.epilogue.String()
	}
	switch {
	case r.p == spmm.AutoP:
		s += "/pauto"
	case r.p != 0:
		s += fmt.Sprintf("/p%d", r.p)
	}
	if r.seed != 1 {
		s += fmt.Sprintf("/seed%d", r.seed)
	}
	return s
}

func number(x float64) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }
