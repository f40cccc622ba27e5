package rfx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
)

// Every entry is where the comment of Strips says, and nothing else is.
func TestPackStrips(t *testing.T) {
	for _, p := range rfx.All {
		for _, s := range []struct {
			rows, cols, blocks int
			density            float64
		}{
			{1, 1, 1, 1}, {16, 64, 1, 1}, {40, 200, 2, 0.3}, {100, 1000, 16, 0.05}, {33, 129, 4, 0.9}, {20, 500, 2, 0},
			{0, 70, 1, 1}, {5, 0, 1, 1},
		} {
			t.Run(fmt.Sprintf("p%d/%d×%d", p, s.rows, s.cols), func(t *testing.T) {
				testStrips(t, anyBits(s.rows, s.cols, s.density), p, s.blocks)
			})
		}
	}
}

// anyBits returns a matrix of that density, whose values have any bits: not all are finite.
func anyBits(rows, cols int, density float64) *formats.CSR[half.F16] {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	a := &formats.CSR[half.F16]{Rows: rows, Cols: cols, RowPtr: []int64{0}}
	for range rows {
		for k := range cols {
			if r.Float64() < density {
				a.ColIdx = append(a.ColIdx, int32(k))
				a.Val = append(a.Val, half.F16(r.Uint32()))
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func testStrips(t *testing.T, a *formats.CSR[half.F16], p rfx.P, blocks int) {
	ranges := rfx.Rows(a)
	s, ok := rfx.PackStrips(a, ranges, p, blocks, math.MaxInt)
	if !ok {
		t.Fatal("refused")
	}
	if _, ok := rfx.PackStrips(a, ranges, p, blocks, s.Largest-1); ok && s.Largest > 0 {
		t.Errorf("a segment of %d bytes is taken where less is allowed", s.Largest)
	}
	if got, want := len(s.Data), int(s.Offsets[len(s.Offsets)-1])*rfx.StripUnit; got != want {
		t.Fatalf("%d bytes, want %d", got, want)
	}
	total := 0
	for i := range (a.Rows + rfx.StripRows - 1) / rfx.StripRows {
		for j := range s.Segments {
			at := i*s.Segments + j
			segment := s.Data[int(s.Offsets[at])*rfx.StripUnit : int(s.Offsets[at+1])*rfx.StripUnit]
			if len(segment) > s.Largest {
				t.Errorf("a segment of %d bytes, where the largest is of %d", len(segment), s.Largest)
			}
			total += checkSegment(t, a, ranges, p, segment, i, j*blocks, min(blocks, (a.Cols+63)/64-j*blocks))
		}
	}
	if total != len(a.Val) {
		t.Errorf("%d entries, want %d", total, len(a.Val))
	}
}

// checkSegment checks a segment of n blocks from `block` on and returns its entries.
func checkSegment(t *testing.T, a *formats.CSR[half.F16], ranges []rfx.Range, p rfx.P, segment []byte,
	strip, block, n int) (total int) {
	digits := segment[n*128:]
	for lane := range 32 {
		next := 0
		for b := range n {
			mask := binary.LittleEndian.Uint32(segment[b*128+lane*4:])
			for e := range 32 {
				i, r, byteOf := e/16, e/4%4, e%4
				bit := 16*i + 4*byteOf + r
				row := strip*16 + lane/4 + 8*(r%2)
				col := (block+b)*64 + 32*i + 16*(r/2) + 4*(lane%4) + byteOf
				x, stored := entry(a, row, col)
				if got := mask>>bit&1 != 0; got != stored {
					t.Fatalf("(%d, %d) is an entry: %v, want %v", row, col, got, stored)
				}
				if !stored {
					continue
				}
				total++
				q := int64(0)
				for d := range p.Bytes() {
					q += int64(int8(digits[next/4*128+lane*4+next%4])) << (8 * d)
					next++
				}
				want := int64(0)
				if rfx.IsFinite(x) {
					want = rfx.Quantise(x, p.L(ranges[row].E()))
				}
				if q != want {
					t.Fatalf("entry (%d, %d), %g, is %d, want %d", row, col, x, q, want)
				}
			}
		}
	}
	return total
}

func entry(a *formats.CSR[half.F16], row, col int) (x float32, stored bool) {
	if row >= a.Rows {
		return 0, false
	}
	for e := a.RowPtr[row]; e < a.RowPtr[row+1]; e++ {
		if int(a.ColIdx[e]) == col {
			return a.Val[e].Float32(), true
		}
	}
	return 0, false
}
