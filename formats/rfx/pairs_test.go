package rfx_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
)

// Reading pairs as the comment of Pairs says, and as matrix instructions do, gives the matrix back.
func TestPackPairs(t *testing.T) {
	for _, p := range rfx.All {
		for _, s := range []struct {
			rows, cols, blocks int
			density            float64
		}{
			{1, 1, 1, 1}, {16, 64, 1, 1}, {40, 200, 2, 0.3}, {100, 1000, 4, 0.05}, {33, 129, 4, 0.9}, {20, 500, 3, 0},
			{0, 70, 1, 1}, {5, 0, 1, 1}, {17, 3000, 4, 0.2},
		} {
			t.Run(fmt.Sprintf("p%d/%d×%d", p, s.rows, s.cols), func(t *testing.T) {
				testPairs(t, anyBits(s.rows, s.cols, s.density), p, s.blocks)
			})
		}
	}
}

func testPairs(t *testing.T, a *formats.CSR[half.F16], p rfx.P, blocks int) {
	ranges := rfx.Rows(a)
	s, ok := rfx.PackPairs(a, ranges, p, blocks, math.MaxInt)
	if !ok {
		t.Fatal("refused")
	}
	if _, ok := rfx.PackPairs(a, ranges, p, blocks, s.Largest-1); ok && s.Largest > 0 {
		t.Errorf("a segment of %d bytes is taken where less is allowed", s.Largest)
	}
	if want := int(s.Offsets[len(s.Offsets)-1]) * rfx.PairUnit; len(s.Data) != want || s.Size != int64(want) {
		t.Fatalf("%d bytes, %d, want %d", len(s.Data), s.Size, want)
	}
	empty, places, ok := rfx.PairPlaces(a.RowPtr, a.ColIdx, a.Cols, p, blocks, s.Largest)
	if !ok || empty.Size != s.Size || empty.Data != nil {
		t.Errorf("%d bytes by places, want %d", empty.Size, s.Size)
	}
	got, pairs, all := map[[2]int]int64{}, int64(0), int64(0)
	for i := range (a.Rows + 15) / 16 {
		segment, regular, extra, each := int(s.Strips[2*i]), (a.Cols+63)/64, 0, 1
		if word := s.Strips[2*i+1]; word == rfx.Doubled {
			regular, each = 2*regular, 2
		} else {
			extra = int(word)
		}
		for _, x := range []struct {
			blocks int
			extra  bool
		}{{regular, false}, {extra, true}} {
			all += int64(x.blocks)
			for first := 0; first < x.blocks; first += blocks {
				data := s.Data[int(s.Offsets[segment])*16 : int(s.Offsets[segment+1])*16]
				if len(data) > s.Largest {
					t.Errorf("a segment of %d bytes, where the largest is of %d", len(data), s.Largest)
				}
				pairs += readPairs(t, data, p, i*16, first, min(blocks, x.blocks-first), x.extra, each, got)
				segment++
			}
		}
	}
	if pairs != s.Pairs || all != s.Count {
		t.Errorf("%d pairs, %d blocks, want %d, %d", s.Pairs, s.Count, pairs, all)
	}
	for i := range a.Rows {
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			want := int64(0)
			if x := a.Val[e].Float32(); rfx.IsFinite(x) {
				want = rfx.Quantise(x, p.L(ranges[i].E()))
			}
			at := [2]int{i, int(a.ColIdx[e])}
			if got[at] != want {
				t.Fatalf("entry %v is %d, want %d", at, got[at], want)
			}
			if x := digitsAt(s.Data[places[e]:], p); x != want {
				t.Fatalf("entry %v has %d at its place, want %d", at, x, want)
			}
			delete(got, at)
		}
	}
	for at, x := range got {
		if x != 0 {
			t.Fatalf("%v is %d, and no entry", at, x)
		}
	}
}

// digitsAt returns what an entry's digits, two bytes apart, are.
func digitsAt(b []byte, p rfx.P) (q int64) {
	for d := range p.Bytes() {
		q += int64(int8(b[2*d])) << (8 * d)
	}
	return q
}

// readPairs adds the entries of a segment of n blocks to got, and returns its pairs. `each` neighbouring blocks have
// the same groups.
func readPairs(t *testing.T, data []byte, p rfx.P, row, block, n int, extra bool, each int,
	got map[[2]int]int64) int64 {
	word := binary.LittleEndian.Uint16
	groups := data
	if extra {
		data = data[32*n:]
	}
	starts, data := data, data[(2*n+15)/16*16:]
	places, lanes, values := data, data[128*n:], data[192*n:]
	next := 0
	for b := range n {
		if int(word(starts[2*b:])) != next {
			t.Fatalf("block %d begins at pair %d, want %d", b, word(starts[2*b:]), next)
		}
		for lane := range 32 {
			x := word(lanes[64*b+2*lane:])
			if next != int(word(starts[2*b:]))+int(x>>8) {
				t.Fatalf("lane %d begins at pair %d, want %d", lane, x>>8, next)
			}
			for bit := range 8 {
				if x>>bit&1 == 0 {
					continue
				}
				r, j := lane/4+bit/2%2*8, bit/4*8+lane%4*2+bit%2
				group := (block+b)/each*16 + j
				if extra {
					group = int(word(groups[32*b+2*j:]))
				}
				of := r%8*4 + j/8*2 + r/8
				columns := binary.LittleEndian.Uint32(places[128*b+4*of:]) >> (j % 8 * 4)
				if columns&3 >= columns>>2&3 {
					t.Fatalf("the columns of a pair are %d and %d", columns&3, columns>>2&3)
				}
				for slot := range 2 {
					at := [2]int{row + r, 4*group + int(columns>>(2*slot)&3)}
					got[at] += digitsAt(values[next*((2*p.Bytes()+3)&^3)+slot:], p)
				}
				next++
			}
		}
	}
	return int64(next)
}
