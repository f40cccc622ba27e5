// Residues: integers modulo small coprime numbers, which multiply exactly in 8 bits.

package rfx

import (
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Moduli are pairwise coprime, in descending order. A residue lies in [−128, 127].
var Moduli = [...]int{256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193, 191}

// LimbBits is the size of the limbs in which kernels add up sums of residues: a limb of a weight times a residue, for
// every modulus, fits 32 bits.
const LimbBits = 20

// ModuliFor returns how many of Moduli determine every sum of k products at precision p, or an error if all of them do
// not. With M the product of the moduli, the sums lie within ±M·31/64: a quotient that is known to 1/64 tells
// which multiple of M to subtract.
func ModuliFor(k int64, p P) (int, error) {
	largest := new(big.Int).Mul(big.NewInt(k), new(big.Int).Mul(big.NewInt(p.Max()), big.NewInt(p.Max())))
	largest.Lsh(largest, 6)
	m := big.NewInt(31)
	for i, x := range Moduli {
		if m.Mul(m, big.NewInt(int64(x))); m.Cmp(largest) > 0 {
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("sums of %d products at p = %d exceed the product of %d moduli", k, p, len(Moduli))
}

// Residues converts integers to residues modulo the first n of Moduli, and sums of their products back (the Chinese
// remainder theorem; Ozaki, Uchino and Imamura call this Ozaki scheme II). With M the product of the moduli and
// W_i = M/m_i, a sum is Σ_i W_i·(s_i mod m_i) modulo M, where s_i is Σ_k A_i(a_k)·B_i(b_k).
type Residues struct {
	moduli  []int
	product *big.Int
	weights []*big.Int // W_i
	inverse []int64    // of W_i modulo m_i
}

// NewResidues returns the conversions for the first n of Moduli.
func NewResidues(n int) *Residues { return residuesOf(Moduli[:n]) }

// residuesOf returns the conversions for moduli that are pairwise coprime and at most 256.
func residuesOf(moduli []int) *Residues {
	r := &Residues{moduli: moduli, product: big.NewInt(1), inverse: make([]int64, len(moduli))}
	for _, m := range moduli {
		r.product.Mul(r.product, big.NewInt(int64(m)))
	}
	for i, x := range moduli {
		m := big.NewInt(int64(x))
		w := new(big.Int).Div(r.product, m)
		r.weights = append(r.weights, w)
		r.inverse[i] = new(big.Int).ModInverse(new(big.Int).Mod(w, m), m).Int64()
	}
	return r
}

// balanced returns q modulo m in [−⌊m/2⌋, ⌈m/2⌉ − 1].
func balanced(q, m int64) int8 {
	h := m / 2
	x := (q + h) % m
	if x < 0 {
		x += m
	}
	return int8(x - h)
}

// A returns the residue of an element of A modulo m_i, times the inverse of W_i.
func (r *Residues) A(q int64, i int) int8 {
	m := int64(r.moduli[i])
	return balanced(q%m*r.inverse[i], m)
}

// B returns the residue of an element of B modulo m_i.
func (r *Residues) B(q int64, i int) int8 { return balanced(q, int64(r.moduli[i])) }

// Combine returns the sum whose residues' sums of products these are, one for each modulus.
func (r *Residues) Combine(sums []int64) Int128 {
	t := new(big.Int)
	for i, s := range sums {
		m := big.NewInt(int64(r.moduli[i]))
		t.Add(t, new(big.Int).Mul(r.weights[i], new(big.Int).Mod(big.NewInt(s), m)))
	}
	t.Mod(t, r.product)
	if new(big.Int).Lsh(t, 1).Cmp(r.product) > 0 {
		t.Sub(t, r.product)
	}
	return fromBig(t)
}

// fromBig converts a number below 2¹²⁷ in magnitude.
func fromBig(x *big.Int) Int128 {
	lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)) // of the two's complement
	return Int128{new(big.Int).Rsh(x, 64).Int64(), lo.Uint64()}
}

// Table returns what kernels need to put sums together, for a sum x with the residues r_i:
//
//	4 words each  of two moduli, 2⁶⁴/m_i rounded to the nearest integer, 16 bits at a time: with these as weights, the
//	              residues add up to 2⁶⁴·x/M + e modulo 2⁶⁴
//	2 words       M/2⁶⁴, and
//	2 words       the largest |e|, as bits of float64
//	limbs each    W_i in limbs of LimbBits, the lowest first
//	limbs         M likewise
//	1 word        2^(LimbBits·(limbs − 3))/M, as bits of float32
//
// limbs is 3 at least, and such that M fits.
func (r *Residues) Table(limbs int) []uint32 {
	var words []uint32
	two64 := new(big.Int).Lsh(big.NewInt(1), 64)
	off := 0.0
	for i, m := range r.moduli {
		f := new(big.Int).Div(new(big.Int).Add(two64, big.NewInt(int64(m/2))), big.NewInt(int64(m)))
		if i%2 == 0 {
			words = append(words, 0, 0, 0, 0)
		}
		for j := range 4 {
			words[i/2*4+j] |= uint32(f.Uint64()>>(16*j)&0xffff) << (16 * (i % 2))
		}
		distance := new(big.Int).Sub(new(big.Int).Mul(f, big.NewInt(int64(m))), two64) // times m
		off += math.Abs(float64(distance.Int64())) * float64(m-1) / float64(m)
	}
	product := new(big.Float).SetInt(r.product)
	scaled, _ := new(big.Float).Quo(product, new(big.Float).SetInt(two64)).Float64()
	for _, x := range []float64{scaled, off * (1 + 0x1p-40)} {
		words = append(words, uint32(math.Float64bits(x)), uint32(math.Float64bits(x)>>32))
	}
	mask := big.NewInt(1<<LimbBits - 1)
	for _, x := range append(slices.Clone(r.weights), r.product) {
		for l := range limbs {
			limb := new(big.Int).Rsh(x, uint(LimbBits*l))
			words = append(words, uint32(limb.And(limb, mask).Uint64()))
		}
	}
	unit := new(big.Float).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(LimbBits*(limbs-3))))
	f, _ := unit.Quo(unit, product).Float32()
	return append(words, math.Float32bits(f))
}

// DigitWeights returns what kernels make A's residues of: for each modulus, 256^d times the inverse of W_i modulo m_i,
// balanced, for d = 0 to 7, as bytes of two words.
func (r *Residues) DigitWeights() []uint32 {
	var words []uint32
	for i := range r.inverse {
		m, power, w := int64(r.moduli[i]), r.inverse[i], uint64(0)
		for d := range 8 {
			w |= uint64(uint8(balanced(power, m))) << (8 * d)
			power = power * 256 % m
		}
		words = append(words, uint32(w), uint32(w>>32))
	}
	return words
}

// Limbs returns the limbs of LimbBits that the product of the moduli takes, for any sum of fewer than 2¹⁶ products.
func (p P) Limbs() int {
	n, err := ModuliFor(1<<16, p)
	if err != nil {
		panic(err) // not for any precision
	}
	return max(3, (NewResidues(n).product.BitLen()+LimbBits-1)/LimbBits)
}

// Planes says how a matrix lies as bytes, several for each element: a plane for each modulus, or for each digit. A
// plane has, for each 128 columns, 128 bytes of each row, in which 16-byte chunk c is at c xor the row mod 8, as matrix
// units read them from shared memory. In slices it has, for each 32 columns, 32 bytes of each row, so that a tile's
// bytes of a step follow each other.
type Planes struct {
	Rows, Cols int // multiples of 8 and 128
	Slices     bool
}

// size returns the bytes of a plane.
func (l Planes) size() int { return l.Rows * l.Cols }

// at returns the place of an element in a plane.
func (l Planes) at(row, col int) int {
	if l.Slices {
		return (col/32*l.Rows+row)*32 + col%32
	}
	return (col/128*l.Rows+row)*128 + (col%128 ^ row%8<<4)
}

// PackPlanes quantises a's entries at p, given the ranges of its rows, and writes n bytes of each, one in each plane:
// part returns that of plane i. What is not finite, and what is no entry, is 0.
func PackPlanes[T formats.Value](a *formats.CSR[T], rows []Range, p P, l Planes, n int,
	part func(q int64, i int) int8) []byte {
	out := make([]byte, l.size()*n)
	par.Rows(a.RowPtr, 1<<12, func(lo, hi int) {
		var buf [256]float32
		for i := lo; i < hi; i++ {
			unit, last := p.L(rows[i].E()), a.RowPtr[i+1]
			for e := a.RowPtr[i]; e < last; e += int64(len(buf)) {
				x := buf[:min(last-e, int64(len(buf)))]
				formats.ConvertSlice(x, a.Val[e:][:len(x)])
				for j, x := range x {
					if !IsFinite(x) || x == 0 {
						continue
					}
					q, at := Quantise(x, unit), l.at(i, int(a.ColIdx[int(e)+j]))
					for m := range n {
						out[at+m*l.size()] = byte(part(q, m))
					}
				}
			}
		}
	})
	return out
}
