package jigsaw_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/jigsaw"
)

func Example() {
	a := &formats.CSR[float32]{ // the rows of the package comment, which may be dealt in other ways too
		Rows: 2, Cols: 10,
		RowPtr: []int64{0, 4, 8},
		ColIdx: []int32{1, 3, 5, 8, 1, 3, 5, 9},
		Val:    []float32{1, 2, 3, 4, 5, 6, 7, 8},
	}
	m, err := jigsaw.Encode(a, jigsaw.Options{BlockTile: 16})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("columns", m.ColIdx)
	fmt.Println("steps  ", m.StepPtr)
	fmt.Println("tile   ", m.BlockColIdx[:16])
	fmt.Printf("fill    %.3f\n", m.Stats().Fill)
	fmt.Println("columns in tiles", m.Reordering().Columns)
	// Output:
	// columns [1 3 5 8 9]
	// steps   [0 2]
	// tile    [0 2 1 3 4 3 3 3 1 3 0 2 4 3 3 3]
	// fill    0.016
	// columns in tiles 5
}

var size = formatstest.UpTo(100, 150)

func options(t *rapid.T) jigsaw.Options {
	return jigsaw.Options{
		BlockTile:      16 * rapid.SampledFrom([]int{1, 2, 4, 16, 3}).Draw(t, "strips"),
		Span:           rapid.SampledFrom([]int{0, 32, 64, 1000}).Draw(t, "span"),
		AvoidConflicts: rapid.Bool().Draw(t, "avoid"),
	}
}

func roundTrip[T formats.Value](t *rapid.T) {
	a, o := formatstest.Draw[T](t, size), options(t)
	m, err := jigsaw.Encode(a, o)
	formatstest.Holds(t, a, m, err)
	r := m.Reordering()
	if o.AvoidConflicts && r.Conflicts != 0 {
		t.Fatalf("%d conflicts, which were to be avoided", r.Conflicts)
	}
	if r.Columns > 16*r.Tiles || r.Tiles > 2*int64(m.Steps()) {
		t.Fatalf("%+v in %d steps", r, m.Steps())
	}
}

func TestRoundTrip(t *testing.T) {
	formatstest.EachType(t, roundTrip[half.F16], roundTrip[half.BF16], roundTrip[float32])
}

// TestInstruction multiplies as mma.m16n8k32 with 2:4 sparsity does, reading its operands where a warp's
// lanes find them.
func TestInstruction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Draw[float32](t, size)
		for i := range a.Val {
			a.Val[i] = float32(i%7 + 1)
		}
		m, err := jigsaw.Encode(a, options(t))
		if err != nil {
			t.Fatal(err)
		}
		b := make([]float32, a.Cols)
		for i := range b {
			b[i] = float32(i*i%13 - 6)
		}
		perBlock := m.BlockTile / 16
		for s := range m.Strips() {
			var c [16]float32
			cols := m.ColIdx[m.BlockPtr[s/perBlock]:m.BlockPtr[s/perBlock+1]]
			for n := m.StepPtr[s]; n < m.StepPtr[s+1]; n++ {
				instruction(&c, m.Values[256*n:], m.Metadata[32*(n/2):], int(n%2), func(k int) float32 {
					return b[cols[m.BlockColIdx[32*int(n)+k]]]
				})
			}
			for r := range c {
				var want float32
				if i := 16*s + r; i < a.Rows {
					for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
						want += a.Val[p] * b[a.ColIdx[p]]
					}
				}
				if c[r] != want {
					t.Fatalf("strip %d, row %d: %v, want %v", s, r, c[r], want)
				}
			}
		}
	})
}

// instruction adds to c, one column of C, the product of a step's operand and a column of B. PTX ISA,
// "Matrix fragments for sparse mma.m16n8k32": lane 4·g+q holds rows g and g+8, places 4·q to 4·q+3 and
// 16+4·q to 19+4·q; with selector f, lanes 4·g+2·f and 4·g+2·f+1 hold the metadata of those rows.
func instruction(c *[16]float32, values []float32, metadata []uint32, f int, b func(k int) float32) {
	for lane := range 32 {
		g, q := lane/4, lane%4
		for i := range 8 { // register i/2, half i%2
			row, tile := g+8*(i/2%2), i/4
			meta := metadata[4*g+2*f+tile] >> (16 * (i / 2 % 2)) >> (4 * q) & 15
			k := 16*tile + 4*q + int(meta>>(2*(i%2))&3)
			c[row] += values[8*lane+i] * b(k)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	good, bad := formatstest.GoodAndBad()
	formatstest.Refuses(t, jigsaw.Encode[float32], []formatstest.Refusal[jigsaw.Options]{
		{"no block", good, jigsaw.Options{}, "blocks of 0 rows"},
		{"half a strip", good, jigsaw.Options{BlockTile: 24}, "blocks of 24 rows"},
		{"block too large", good, jigsaw.Options{BlockTile: 2048}, "blocks of 2048 rows"},
		{"span too short", good, jigsaw.Options{BlockTile: 16, Span: 31}, "a span of 31"},
		{"negative span", good, jigsaw.Options{BlockTile: 16, Span: -1}, "a span of -1"},
		{"column out of range", bad, jigsaw.Options{BlockTile: 16}, "row 0"},
	})
}

// TestHopeless: a matrix without zeros leaves half of each quad empty, and no more.
func TestHopeless(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=64,cols=256,density=1")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []jigsaw.Options{{BlockTile: 16}, {BlockTile: 64, Span: 64, AvoidConflicts: true}} {
		m, err := jigsaw.Encode(a, o)
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Fill != 1 {
			t.Errorf("%+v: fill %v, want 1: all slots hold entries", o, s.Fill)
		}
		if r := m.Reordering(); r.Columns != 8*r.Tiles {
			t.Errorf("%+v: %+v: want 8 columns in each tile", o, r)
		}
	}
}

// TestFill: what the paper reorders goes into full tiles. The vectors of 8 rows have entries in half of the
// slots' places at most; the fill says how many slots are left empty.
func TestFill(t *testing.T) {
	for _, test := range []struct {
		spec string
		o    jigsaw.Options
		fill float64
	}{
		{"gen:vector,rows=512,cols=2048,v=8,sparsity=0.7", jigsaw.Options{BlockTile: 16}, 0.95},
		{"gen:vector,rows=512,cols=2048,v=8,sparsity=0.7", jigsaw.Options{BlockTile: 256, Span: 896, AvoidConflicts: true},
			0.95},
		{"gen:vector,rows=512,cols=2048,v=8,sparsity=0.9", jigsaw.Options{BlockTile: 64, Span: 224, AvoidConflicts: true},
			0.8},
		{"gen:nm,rows=512,cols=2048,n=2,m=4", jigsaw.Options{BlockTile: 16}, 0.8},
	} {
		a, err := gen.CSR(test.spec)
		if err != nil {
			t.Fatal(err)
		}
		m, err := jigsaw.Encode(a, test.o)
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Fill < test.fill {
			t.Errorf("%s, %+v: fill %.3f, want at least %v", test.spec, test.o, s.Fill, test.fill)
		}
	}
}

func TestStats(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 17, Cols: 3, RowPtr: append(slices.Repeat([]int64{0}, 16), 2, 3),
		ColIdx: []int32{0, 2, 2}, Val: make([]half.F16, 3)}
	m, err := jigsaw.Encode(a, jigsaw.Options{BlockTile: 16})
	if err != nil {
		t.Fatal(err)
	}
	// 3 pointers to blocks and 3 to strips, 3 columns, 2 blocks in order; each strip has two steps of 32
	// positions, 16 words of metadata, 8 of mask and 256 values.
	want := formats.Stats{StoredBytes: 4*(3+3+3+2) + 4*4*56 + 2*1024, Slots: 1024, Fill: 3. / 1024, MACs: 1024, Gathers: 3}
	if got := m.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r := m.Reordering(); r.Tiles != 2 || r.Columns != 3 {
		t.Errorf("got %+v, want 3 columns in 2 tiles", r)
	}
}

// small is a valid matrix of two blocks of two strips; the last strip has no rows.
func small(t *testing.T) *jigsaw.Matrix[float32] {
	t.Helper()
	a, err := gen.CSR("gen:uniform,rows=40,cols=60,density=0.3,values=ones")
	if err != nil {
		t.Fatal(err)
	}
	m, err := jigsaw.Encode(a, jigsaw.Options{BlockTile: 32, Span: 48})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestValidate spoils one thing at a time.
func TestValidate(t *testing.T) {
	type M = jigsaw.Matrix[float32]
	formatstest.Finds(t, func() *M { return small(t) }, []formatstest.Damage[*M]{
		{"nothing", func(m *M) {}, ""},
		{"block size", func(m *M) { m.BlockTile = 8 }, "blocks of 8 rows"},
		{"block size beyond", func(m *M) { m.BlockTile = math.MaxInt - 15 }, "blocks of"},
		{"span", func(m *M) { m.Span = 3 }, "a span of 3"},
		{"negative rows", func(m *M) { m.Rows = -1 }, "matrix of -1×60"},
		{"more rows", func(m *M) { m.Rows = 65 }, "3 block pointers for 3 blocks"},
		{"no block pointers", func(m *M) { m.BlockPtr = nil }, "0 block pointers"},
		{"no step pointers", func(m *M) { m.StepPtr = nil }, "0 step pointers"},
		{"values missing", func(m *M) { m.Values = m.Values[1:] }, "values for"},
		{"positions missing", func(m *M) { m.BlockColIdx = m.BlockColIdx[32:] }, "column positions"},
		{"metadata missing", func(m *M) { m.Metadata = nil }, "metadata words"},
		{"mask missing", func(m *M) { m.Mask = nil }, "mask words"},
		{"order too short", func(m *M) { m.Order = m.Order[:1] }, "1 blocks in order"},
		{"first block", func(m *M) { m.BlockPtr[0] = 1 }, "block 0 starts at column 1"},
		{"falling block", func(m *M) { m.BlockPtr[1] = 1 << 31 }, "block 1 ends at"},
		{"block past the end", func(m *M) { m.BlockPtr[2]++ }, "the blocks end at"},
		{"odd step", func(m *M) { m.StepPtr[1]-- }, "strip 0 ends at"},
		{"step past the end", func(m *M) { m.StepPtr[4] += 2 }, "the strips end at"},
		{"column out of range", func(m *M) { m.ColIdx[len(m.ColIdx)-1] = 60 }, "block 1, column 60"},
		{"columns unsorted", func(m *M) { m.ColIdx[1] = m.ColIdx[0] }, "block 0, column"},
		{"position out of range", func(m *M) { m.BlockColIdx[40] = 60 }, "strip 0, step 1: place 8 has position 60"},
		{"span exceeded", func(m *M) { m.BlockColIdx[0] = 59 }, "position 59 with"},
		{"metadata descend", func(m *M) { m.Metadata[0] = 0 }, "the metadata of row 0, tile 0, quad 0 do not ascend"},
		{"value without mask", func(m *M) { m.Mask[0] = 0 }, "step 0: slot"},
		{"row that is not there", func(m *M) { m.Rows = 39 }, "below the last of 39 rows"},
		{"column twice", func(m *M) {
			for k := range m.BlockColIdx[:32] {
				m.BlockColIdx[k] = m.BlockColIdx[0]
			}
		}, "has column"},
		{"order out of range", func(m *M) { m.Order[0] = 3 }, "order names block 3 at 0"},
		{"order twice", func(m *M) { m.Order[1] = m.Order[0] }, "order has block"},
	})
}

// FuzzValidate changes words of a valid matrix: whatever passes can be decoded to a valid matrix.
func FuzzValidate(f *testing.F) {
	f.Add([]byte{0, 0, 1, 3, 40, 17})
	f.Fuzz(func(t *testing.T, b []byte) {
		m := small(&testing.T{})
		for ; len(b) >= 3; b = b[3:] {
			words := [][]uint32{m.BlockPtr, m.ColIdx, m.StepPtr, m.BlockColIdx, m.Metadata, m.Mask, m.Order}[b[0]%7]
			words[int(b[1])%len(words)] ^= uint32(b[2]) << (b[0] / 7 % 25)
		}
		if m.Validate() != nil {
			return
		}
		if err := m.Decode().Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	for _, v := range []int{1, 8} { // scattered entries; whole vectors of 8
		a32, err := gen.CSR(fmt.Sprintf("gen:vector,rows=4096,cols=4096,sparsity=0.9,v=%d", v))
		if err != nil {
			b.Fatal(err)
		}
		a := formats.Convert[half.F16](a32)
		for _, o := range []jigsaw.Options{{BlockTile: 16}, {BlockTile: 256, Span: 896, AvoidConflicts: true}} {
			b.Run(fmt.Sprintf("4096x4096/zeros=90/vectors=%d/block=%d", v, o.BlockTile), func(b *testing.B) {
				for b.Loop() {
					if _, err := jigsaw.Encode(a, o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
