// Elements of C as bit patterns: packing, the one form that equal results have, digests.

package conformance

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// pack rounds x, a number of float32 unless t is F64, to an element of type t, to nearest even.
func pack(t dtype.Type, x float64) uint64 {
	switch t {
	case dtype.F16:
		return uint64(half.F16From(float32(x)))
	case dtype.BF16:
		return uint64(half.BF16From(float32(x)))
	case dtype.F64:
		return math.Float64bits(x)
	}
	return uint64(math.Float32bits(float32(x)))
}

// unpack is exact.
func unpack(t dtype.Type, bits uint64) float64 {
	switch t {
	case dtype.F16:
		return float64(half.F16(bits).Float32())
	case dtype.BF16:
		return float64(half.BF16(bits).Float32())
	case dtype.F64:
		return math.Float64frombits(bits)
	}
	return float64(math.Float32frombits(uint32(bits)))
}

// canonical gives all zeros and all NaNs of type t one form each: +0, and the quiet NaN without a
// payload (0x7FC00000 in f32).
func canonical(t dtype.Type, bits uint64) uint64 {
	exponent, sign := uint64(0x7f800000), uint64(1)<<31
	switch t {
	case dtype.F16:
		exponent, sign = 0x7c00, 1<<15
	case dtype.BF16:
		exponent, sign = 0x7f80, 1<<15
	case dtype.F64:
		exponent, sign = 0x7ff<<52, 1<<63
	}
	switch magnitude := bits &^ sign; {
	case magnitude == 0:
		return 0
	case magnitude > exponent:
		return exponent | exponent&-exponent>>1
	}
	return bits
}

// get and put access element i of packed memory.
func get(t dtype.Type, mem []byte, i int) uint64 {
	switch t.Size() {
	case 2:
		return uint64(binary.LittleEndian.Uint16(mem[2*i:]))
	case 8:
		return binary.LittleEndian.Uint64(mem[8*i:])
	}
	return uint64(binary.LittleEndian.Uint32(mem[4*i:]))
}

func put(t dtype.Type, mem []byte, i int, bits uint64) {
	switch t.Size() {
	case 2:
		binary.LittleEndian.PutUint16(mem[2*i:], uint16(bits))
	case 8:
		binary.LittleEndian.PutUint64(mem[8*i:], bits)
	default:
		binary.LittleEndian.PutUint32(mem[4*i:], uint32(bits))
	}
}

// outputs are the elements of a result in canonical form, row after row.
type outputs struct {
	m, n int
	typ  dtype.Type
	bits []uint64
}

// round returns values as outputs of type t.
func round(t dtype.Type, m, n int, values []float64) *outputs {
	o := &outputs{m, n, t, make([]uint64, m*n)}
	for i, x := range values {
		o.bits[i] = canonical(t, pack(t, x))
	}
	return o
}

// collect reads outputs out of a matrix in memory, whose rows (columns) are ld apart.
func collect(t dtype.Type, m, n, ld int, colMajor bool, mem []byte) *outputs {
	o := &outputs{m, n, t, make([]uint64, m*n)}
	for i := range m {
		for j := range n {
			at := i*ld + j
			if colMajor {
				at = j*ld + i
			}
			o.bits[i*n+j] = canonical(t, get(t, mem, at))
		}
	}
	return o
}

// dense returns the outputs as numbers.
func (o *outputs) dense() *formats.Dense[float64] {
	d := formats.NewDense[float64](o.m, o.n)
	for i, b := range o.bits {
		d.Data[i] = unpack(o.typ, b)
	}
	return d
}

// digestDigits is how many hexadecimal digits of a SHA-256 a manifest has of inputs and outputs. docs/conformance.md
// says what they must tell apart.
const digestDigits = 16

func short(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:digestDigits/2]) }

// digest is the short SHA-256 of the type, the size and the elements.
func (o *outputs) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "C %v %d×%d\n", o.typ, o.m, o.n)
	size := o.typ.Size()
	mem := make([]byte, size*len(o.bits))
	for i, b := range o.bits {
		put(o.typ, mem, i, b)
	}
	h.Write(mem)
	return short(h)
}

// differ says where o is not want, nil if nowhere.
func (o *outputs) differ(want *outputs) error {
	count, first := 0, -1
	for i, b := range o.bits {
		if b != want.bits[i] {
			if count == 0 {
				first = i
			}
			count++
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d outputs are wrong: C[%d,%d] is %v (%#x), must be %v (%#x)", count, len(o.bits),
		first/o.n, first%o.n, unpack(o.typ, o.bits[first]), o.bits[first], unpack(o.typ, want.bits[first]), want.bits[first])
}
