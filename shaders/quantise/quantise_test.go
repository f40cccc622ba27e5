package quantise_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Element (k, j) of B as f32 bits; of a 16-bit type if it fits one.
type element func(r *rand.Rand, k, j int) uint32

func normal(r *rand.Rand, _, _ int) uint32 { return math.Float32bits(float32(r.NormFloat64())) }
func anyBits(r *rand.Rand, _, _ int) uint32 {
	return r.Uint32()
}

// Numbers of one exponent, half of them with ties at some precision.
func ties(r *rand.Rand, _, j int) uint32 {
	return uint32(r.IntN(2))<<31 | uint32(100+j)<<23 | uint32(r.IntN(1<<23))>>(j%20)<<(j%20)
}

// Exponents that spread over a column's 47 bits and below.
func spread(r *rand.Rand, k, _ int) uint32 {
	return uint32(r.IntN(2))<<31 | uint32(60+k%70)<<23 | uint32(r.IntN(1<<23))
}
func zeros(_ *rand.Rand, k, _ int) uint32 { return uint32(k%2) << 31 }
func subnormal(r *rand.Rand, _, _ int) uint32 {
	return r.Uint32()&0x80000000 | uint32(r.IntN(1<<(1+r.IntN(23))))
}
func specials(r *rand.Rand, k, j int) uint32 {
	if (k+j)%7 == 0 {
		return []uint32{0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffffffff}[r.IntN(5)]
	}
	return normal(r, k, j)
}

func TestQuantise(t *testing.T) {
	kinds := map[string]element{"normal": normal, "any bits": anyBits, "ties": ties, "spread": spread, "zeros": zeros,
		"subnormal": subnormal, "specials": specials}
	shapes := []struct{ k, n, ldb int }{{1, 1, 8}, {0, 5, 8}, {3, 8, 8}, {64, 7, 16}, {65, 33, 40}, {300, 66, 72},
		{1030, 36, 40},
		{129, 130, 136}, {9000, 3, 8}}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		if shadertest.CompileOnly() {
			return
		}
		for name, f := range kinds {
			for i, s := range shapes {
				t.Run(fmt.Sprintf("%s/%d×%d", name, s.k, s.n), func(t *testing.T) {
					for j, p := range rfx.All {
						if s.k > 1000 && i%4 != j {
							continue
						}
						run[float32](t, dev, s.k, s.n, s.ldb, p, f)
						run[half.F16](t, dev, s.k, s.n, s.ldb, p, f)
						run[half.BF16](t, dev, s.k, s.n, s.ldb, p, f)
					}
				})
			}
		}
	})
}

// Every f16 and every bf16.
func TestAll16BitElements(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		if shadertest.CompileOnly() {
			return
		}
		for _, p := range rfx.All {
			run[half.F16](t, dev, 256, 256, 256, p, func(_ *rand.Rand, k, j int) uint32 {
				return math.Float32bits(half.F16(k | j<<8).Float32()) // columns of like exponents
			})
			run[half.BF16](t, dev, 256, 256, 256, p, func(_ *rand.Rand, k, j int) uint32 { return uint32(k|j<<8) << 16 })
		}
	})
}

// run quantises a K×N matrix on the device, to integers and to digits where it can, and holds ranges and elements
// against package rfx.
func run[T formats.Value](t *testing.T, dev backend.Device, k, n, ldb int, p rfx.P, f element) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(k), uint64(n)))
	b := &formats.Dense[T]{Rows: k, Cols: n, LD: ldb, Data: make([]T, k*ldb)}
	x := make([]float32, ldb)
	for i := range k {
		for j := range x {
			x[j] = float32(math.NaN()) // padding
			if j < n {
				x[j] = math.Float32frombits(f(r, i, j))
			}
		}
		formats.ConvertSlice(b.Data[i*ldb:], x)
	}
	v, err := quantise.Variant(dev.Caps())
	if err != nil {
		t.Fatal(err)
	}
	checkRanges(t, dev, v, quantise.NewLayout(k, n, p), b)
	check(t, dev, v, quantise.NewLayout(k, n, p), b)
	if v.Const("DIGITS") > 0 && p < rfx.P47 {
		check(t, dev, v, quantise.NewDigits(k, n, p), b)
	}
	if v.Const("FRAGMENTS") > 0 {
		check(t, dev, v, quantise.NewFragments(k, n, p), b)
		check(t, dev, v, quantise.NewRanges(k, n, p), b)
	}
	if c := dev.Caps().Code; c != backend.CodeGo {
		moduli, err := rfx.ModuliFor(int64(max(1, k)), p)
		if err != nil {
			t.Fatal(err)
		}
		check(t, dev, v, quantise.NewPlanes(k, n, p, moduli, false), b)
		if p == rfx.P15 || c != backend.CodePTX {
			check(t, dev, v, quantise.NewPlanes(k, n, p, p.Bytes(), true), b)
		}
	}
}

// checkRanges holds the ranges of the columns' parts, joined, against package rfx.
func checkRanges[T formats.Value](t *testing.T, dev backend.Device, v *spec.Variant, l quantise.Layout,
	b *formats.Dense[T]) {
	t.Helper()
	launch, err := quantise.Ranges(v, l, formats.TypeOf[T](), b.LD)
	if err != nil {
		t.Fatal(err)
	}
	q := make([]byte, l.Bytes())
	shadertest.Run(t, dev, quantise.Program, launch, backend.Bytes(b.Data), q)
	words := backend.View[rfx.Range](q)
	for j, want := range rfx.Cols(b) {
		var got rfx.Range
		for c := range l.Chunks {
			got = got.Join(words[(c+1)*l.LD+j])
		}
		if got != want {
			t.Fatalf("%v: range of column %d's parts is %x, want %x", formats.TypeOf[T](), j, uint32(got), uint32(want))
		}
	}
}

// withoutLowest returns a range as Launch leaves it: on CUDA and the CPU without the lowest bit that is set.
func withoutLowest(v *spec.Variant, r rfx.Range) rfx.Range {
	if v.Code == backend.CodePTX || v.Code == backend.CodeGo {
		return r &^ 0xffc00
	}
	return r
}

func check[T formats.Value](t *testing.T, dev backend.Device, v *spec.Variant, l quantise.Layout, b *formats.Dense[T]) {
	t.Helper()
	k, n, p := b.Rows, b.Cols, l.P
	launch, err := quantise.Launch(v, l, formats.TypeOf[T](), b.LD)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float32, b.LD)
	q := make([]byte, l.Bytes())
	for i := range q {
		q[i] = 0xa7
	}
	shadertest.Run(t, dev, quantise.Program, launch, backend.Bytes(b.Data), q)
	words := backend.View[uint32](q)
	cols := rfx.Cols(b)
	for j, want := range cols {
		if got := rfx.Range(words[j]); withoutLowest(v, got) != withoutLowest(v, want) {
			t.Fatalf("p=%d %v: range of column %d is %x, want %x", p, formats.TypeOf[T](), j, uint32(got), uint32(want))
		}
	}
	if l.Ranges {
		for j := n; j < l.LD; j++ {
			if words[j] != 0 {
				t.Fatalf("p=%d %v: range of column %d, which there is not, is %x, want 0", p, formats.TypeOf[T](), j, words[j])
			}
		}
		return
	}
	if l.Planes > 0 {
		checkPlanes(t, l, v.Code != backend.CodePTX, q[4*l.First():], b, cols)
		return
	}
	for i := range k {
		formats.ConvertSlice(x, b.Data[i*b.LD:][:b.LD])
		for j := range l.LD {
			want := int64(0)
			if j < n && rfx.IsFinite(x[j]) {
				want = rfx.Quantise(x[j], p.L(cols[j].E()))
			}
			if got := storedAt(words[l.First():], l, i, j); got != want {
				t.Fatalf("p=%d %v: element (%d, %d), %g, is %d, want %d", p, formats.TypeOf[T](), i, j, x[j], got, want)
			}
		}
	}
	for i := k; l.Fragments && i < (k+63)/64*64; i++ {
		for j := range l.LD {
			if got := storedAt(words[l.First():], l, i, j); got != 0 {
				t.Fatalf("p=%d %v: element (%d, %d), behind the last row, is %d, want 0", p, formats.TypeOf[T](), i, j, got)
			}
		}
	}
}

// storedAt returns element (i, j), given the words of the rows.
func storedAt(words []uint32, l quantise.Layout, i, j int) int64 {
	if !l.Fragments {
		return stored(words[i*l.Row():][:l.Row()], l, j)
	}
	var q int64
	tile, lane, half := j/8*((l.K+63)/64*2)+i/32, j%8*4+i%16/4, i%32/16
	for d := range l.P.Bytes() {
		at := ((tile*l.P.Bytes()+d)*32+lane)*8 + half*4 + i%4
		q += int64(int8(words[at/4]>>(8*(at%4)))) << (8 * d)
	}
	return q
}

// checkPlanes holds the residues or digits of every element, and zeros behind the last row and column, against package
// rfx.
func checkPlanes[T formats.Value](t *testing.T, l quantise.Layout, slices bool, got []byte, b *formats.Dense[T],
	cols []rfx.Range) {
	t.Helper()
	part := rfx.NewResidues(l.Planes).B
	if l.Digits {
		part = func(q int64, i int) int8 {
			d := make([]int32, l.Planes)
			rfx.Digits(d, q, 8)
			return int8(d[i])
		}
	}
	x := make([]float32, b.LD)
	for i := range l.Blocks() * quantise.Depth {
		if i < b.Rows {
			formats.ConvertSlice(x, b.Data[i*b.LD:][:b.LD])
		}
		for j := range l.LD {
			q := int64(0)
			if i < b.Rows && j < b.Cols && rfx.IsFinite(x[j]) {
				q = rfx.Quantise(x[j], l.P.L(cols[j].E()))
			}
			for m := range l.Planes {
				at := ((m*l.Blocks()+i/128)*l.LD+j)*128 + (i/16%8^j%8)*16 + i%16
				if slices {
					at = ((m*l.Blocks()*4+i/32)*l.LD+j)*32 + i%32
				}
				want, x := part(q, m), int8(got[at])
				if x != want && (l.Digits || (int(x)-int(want))%rfx.Moduli[m] != 0) { // any residue of an integer will do
					t.Fatalf("p=%d %v: byte %d of element (%d, %d), %d, is %d, want %d", l.P, formats.TypeOf[T](), m, i, j, q,
						x, want)
				}
			}
		}
	}
}

// stored returns element j of a row as the package's comment describes it.
func stored(row []uint32, l quantise.Layout, j int) int64 {
	if l.Digits {
		var q int64
		for d := range l.P.Bytes() {
			at := d/2*2*l.LD + j/8*16 + d%2*8 + j%8
			if d%2 == 0 && d == l.P.Bytes()-1 {
				at = d*l.LD + j
			}
			q += int64(int8(row[at/4]>>(8*(at%4)))) << (8 * d)
		}
		return q
	}
	switch l.P {
	case rfx.P15:
		return int64(int16(row[j/2] >> (16 * (j % 2))))
	case rfx.P47:
		lo, hi := int32(row[j]), int32(row[l.LD+j])
		if lo < -1<<23 || lo >= 1<<23 {
			return math.MaxInt64
		}
		return int64(hi)<<24 + int64(lo)
	}
	return int64(int32(row[j]))
}

func TestLaunchRefuses(t *testing.T) {
	for _, v := range quantise.Program.Variants {
		good := quantise.NewLayout(10, 5, rfx.P23)
		if _, err := quantise.Launch(v, good, dtype.F16, 8); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		for name, c := range map[string]struct {
			l           quantise.Layout
			t           dtype.Type
			ldb         int
			unsupported bool
		}{
			"precision": {quantise.NewLayout(10, 5, 24), dtype.F16, 8, false},
			"layout":    {quantise.Layout{K: 10, N: 5, LD: 8, Chunks: 7, P: rfx.P23}, dtype.F16, 8, false},
			"negative":  {quantise.NewLayout(10, -5, rfx.P23), dtype.F16, 8, false},
			"type":      {good, dtype.S8, 8, false},
			"ldb":       {good, dtype.F16, 12, false},
			"narrow":    {good, dtype.F16, 0, false},
			"wide":      {good, dtype.F16, 1 << 30, true},
			"digits":    {quantise.NewDigits(10, 5, rfx.P47), dtype.F16, 8, true},
			"planes":    {quantise.NewPlanes(10, 5, rfx.P23, 2, true), dtype.F16, 8, false},
			"fragments": {quantise.NewFragments(10, 1<<20, rfx.P23), dtype.F16, 1 << 20, true},
			"high":      {quantise.NewLayout(int(min(1<<40, int64(math.MaxInt))), 5, rfx.P23), dtype.F16, 8, true},
		} {
			if c.l.K == math.MaxInt {
				continue // no int is too large where ints have 32 bits
			}
			_, err := quantise.Launch(v, c.l, c.t, c.ldb)
			shadertest.Refused(t, v.Name+", "+name, err, c.unsupported)
		}
		if _, err := quantise.Launch(v, quantise.NewRanges(10, 5, rfx.P23), dtype.F32, 8); v.Const("FRAGMENTS") == 0 {
			shadertest.Refused(t, v.Name+", ranges alone", err, true)
		} else if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		planes := quantise.NewPlanes(10, 5, rfx.P23, rfx.P23.Bytes(), true)
		if _, err := quantise.Launch(v, planes, dtype.F16, 8); v.Code == backend.CodePTX || v.Code == backend.CodeGo {
			shadertest.Refused(t, v.Name+", three digits in planes", err, true)
		} else if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

func BenchmarkCPU(b *testing.B) {
	const k, n = 2048, 128
	l := quantise.NewLayout(k, n, rfx.P23)
	v := quantise.Program.Variants[len(quantise.Program.Variants)-1]
	launch, err := quantise.Launch(v, l, dtype.F16, n)
	if err != nil {
		b.Fatal(err)
	}
	x := make([]half.F16, k*n)
	for i := range x {
		x[i] = half.F16(i % 0x7bff)
	}
	args := [][]byte{backend.Bytes(x), make([]byte, l.Bytes())}
	b.SetBytes(2 * k * n)
	for b.Loop() {
		for _, p := range launch.Passes {
			for g := range p.Groups[0] {
				v.Func(args, p.Params, [3]uint32{g})
			}
		}
	}
}
