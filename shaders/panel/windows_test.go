// Do the lists of a staged kernel hold what the format does?

package panel

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/shaders/spec"
)

// drawMatrix returns a matrix in panels of v rows.
func drawMatrix(t *rapid.T, v int, more ...string) *Matrix[float32] {
	a, err := gen.CSR(rapid.SampledFrom(append(more,
		"gen:uniform,rows=61,cols=300,density=0.1", "gen:powerlaw,rows=100,cols=70", "gen:onedense,rows=20,cols=200",
		"gen:uniform,rows=9,cols=40,density=1", "gen:uniform,rows=30,cols=50,density=0")).Draw(t, "matrix"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := cvse.Encode(a, cvse.Options{V: v, Align: rapid.SampledFrom([]int{1, 16}).Draw(t, "align")})
	if err != nil {
		t.Fatal(err)
	}
	return &Matrix[float32]{V: c.V, Cols: c.Cols, Ptr: c.VecPtr, ColIdx: c.ColInd, Values: c.Values, Mask: c.Mask}
}

// TestCut: each column of a panel is in the list of its window once, with its values and mask; what is left of
// a list is padding without values; and lists come in whole steps.
func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMatrix(t, 8)
		size := rapid.SampledFrom([]int{16, 64, 512}).Draw(t, "window")
		w, err := cut(m, size, rapid.Bool().Draw(t, "lanes"))
		if err != nil {
			t.Fatal(err)
		}
		for p := range len(m.Ptr) - 1 {
			checkLists(t, m, w, p, size)
		}
	})
}

// column is a column of a panel, with its values.
type column[T formats.Value] struct {
	number int
	mask   uint32
	values [8]T
}

func checkLists[T formats.Value](t *rapid.T, m *Matrix[T], w *windows[T], p, size int) {
	want := map[column[T]]int{}
	for q := int(m.Ptr[p]); q < m.end(p); q++ {
		want[column[T]{int(m.ColIdx[q]), m.mask(q), [8]T(m.Values[q*m.V:])}]++
	}
	for i := range w.count {
		first, last := int(w.ptr[p*w.count+i]), int(w.ptr[p*w.count+i+1])
		if first%stepVectors != 0 {
			t.Fatalf("panel %d, window %d starts at %d", p, i, first)
		}
		for q := first; q < last; q++ {
			if int(w.local[q]) >= size {
				t.Fatalf("panel %d, window %d: column %d of %d", p, i, w.local[q], size)
			}
			mask := w.mask[q*m.V/32] >> (q * m.V % 32) & 0xff
			c := column[T]{i*size + int(w.local[q]), mask, [8]T(w.values[q*m.V:])}
			if mask == 0 {
				if c.values != [8]T{} {
					t.Fatalf("panel %d, window %d: padding with values %v", p, i, c.values)
				}
				continue
			}
			want[c]--
		}
	}
	for c, n := range want {
		if n != 0 {
			t.Fatalf("panel %d: column %+v is missing %d times", p, c, n)
		}
	}
}

// TestDeal: as long as columns differ mod 4, the four that a quad of lanes reads at once do.
func TestDeal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each := rapid.IntRange(1, 20).Draw(t, "columns of each remainder")
		var cols []uint32
		for i := range 4 * each {
			cols = append(cols, uint32(i%each*4+i/each)) // all of one remainder, then all of the next
		}
		room := spec.Ceil(len(cols), stepVectors) * stepVectors
		d := bankOrder{size: 512, lanes: rapid.Bool().Draw(t, "lanes")}
		order, seen := d.arrange(cols, room), map[int]bool{}
		for turn := range len(cols) / 4 {
			remainders := map[uint32]bool{}
			for lane := range 4 {
				place := turn/2*8 + turn%2 + 2*lane
				if d.lanes {
					place = turn/4*16 + 4*lane + turn%4
				}
				at := order[place]
				remainders[cols[at]%4] = true
				seen[at] = true
			}
			if len(remainders) != 4 {
				t.Fatalf("in turn %d: remainders %v", turn, remainders)
			}
		}
		if len(seen) != len(cols) {
			t.Fatalf("%d of %d columns are read", len(seen), len(cols))
		}
	})
}
