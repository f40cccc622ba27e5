// The kinds of variants: how a matrix is encoded, and B.

package rfx

import (
	"slices"

	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/formats/tiledcsr"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Kind says how a matrix is encoded, and B.
type Kind int

// The kinds. Of several that have their rows from the same format, naming that format requests the first.
const (
	Rows           Kind = iota // every device has them at every p
	Direct                     // rows whose kernels quantise B as they read it, in f32
	Panels                     // of neighbouring rows, for matrix units of 8-bit integers
	Stationary                 // panels of neighbouring rows whose kernels have B in shared memory
	Shuffled                   // panels of rows in the order of format tiledcsr
	InStrips                   // of 16 rows, for matrix units and few columns
	InPairs                    // strips of pairs of entries, for sparse matrix units and few columns
	Residues                   // of all elements, for warpgroup matrix instructions, cooperative matrices and dot products
	Digits                     // of all elements, for cooperative matrices or dot products, and few columns
	SparseResidues             // of two of every four columns, for sparse warpgroup matrix instructions
)

// kinds describes them: the kind of their variants; the format that they have their rows, panels or strips from, for
// strips the one that fast mode has for few columns, for residues for many; a name; why one is taken that was asked for.
var kinds = [...]struct {
	of                *spec.Kind
	format, name, why string
}{
	Rows:   {rowsKind, "csr", "rows", "rows were requested"},
	Direct: {directKind, "csr", "rows with B as it is", "rows that quantise B were requested"},
	Panels: {panelsKind, cvseFormat, "panels", "panels of rows go through matrix units"},
	Stationary: {stationaryKind, cvseFormat, "panels with B in shared memory",
		"panels of rows, with B in shared memory, go through matrix units"},
	Shuffled: {shuffledKind, tiledcsrFormat, "shuffled panels", "its rows are shuffled as in that format"},
	InStrips: {stripsKind, lanestreamFormat, "strips", "strips of rows go through matrix units"},
	InPairs:  {pairsKind, lanestreamFormat, "pairs", "pairs of entries go through sparse matrix units"},
	Residues: {residuesKind, "dense", "residues", "residues are multiplied as 8-bit integers"},
	Digits:   {digitsKind, "dense", "digits", "digits are multiplied as 8-bit integers"},
	SparseResidues: {sparseResiduesKind, sparse24rFormat, "2:4 residues",
		"residues of two of every four columns go through sparse matrix units"},
}

var (
	cvseFormat       = new(cvse.Matrix[float32]).Format()
	lanestreamFormat = new(lanestream.Matrix[float32]).Format()
	sparse24rFormat  = new(sparse24r.Matrix[float32]).Format()
	tiledcsrFormat   = new(tiledcsr.Matrix[float32]).Format()
)

// Kinds returns all kinds.
func Kinds() []Kind {
	all := make([]Kind, len(kinds))
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

func (k Kind) String() string { return kinds[k].name }

// Format names the format that a kind has its rows, panels or strips from.
func (k Kind) Format() string { return kinds[k].format }

// Why says why a kind is taken that was asked for.
func (k Kind) Why() string { return kinds[k].why }

// Alike returns the kinds that have their rows from the same format.
func (k Kind) Alike() []Kind {
	return slices.DeleteFunc(Kinds(), func(x Kind) bool { return x.Format() != k.Format() })
}

// ByRows tells whether a kind has rows as they are in CSR.
func (k Kind) ByRows() bool { return k == Rows || k == Direct }

// InPlanes tells whether a kind has bytes of every element, or of two of every four columns.
func (k Kind) InPlanes() bool { return k == Residues || k == SparseResidues || k == Digits }

// KindOf returns the kind that naming a format requests: Panels for those that no other kind is from.
func KindOf(format string) Kind {
	for k := range kinds {
		if kinds[k].format == format {
			return Kind(k)
		}
	}
	return Panels
}

// kind returns what a variant takes.
func kind(v *spec.Variant) Kind {
	for k := range kinds {
		if kinds[k].of == v.Kind {
			return Kind(k)
		}
	}
	return Shuffled
}
