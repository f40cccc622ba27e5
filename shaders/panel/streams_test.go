// Do the streams of a Hopper variant hold what the format does, where the kernel finds it?

package panel

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

// TestStreams: each column of a panel is in its stream once, with its values and mask; all else has no values; and all
// rows that a step reads are in the ring while it is multiplied.
func TestStreams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SampledFrom([]uint32{8, 16}).Draw(t, "v")
		m := drawMatrix(t, int(v), "gen:onedense,rows=20,cols=2000", "gen:vector,rows=64,cols=3000,v=8,density=0.3",
			"gen:vector,rows=64,cols=3000,v=16,density=0.05")
		x := Hopper("cvse", dtype.F16, v)
		s, err := newStreams(m, x)
		if err != nil {
			t.Fatal(err)
		}
		checkStreams(t, m, s, x)
	})
}

// slot is a place of a matrix's values: a row, counted over panels, and a column.
type slot struct{ row, col int }

func checkStreams(t *rapid.T, m *Matrix[float32], s *streams[float32], v *spec.Variant) {
	want := map[slot]float32{}
	for p := range len(m.Ptr) - 1 {
		for q := int(m.Ptr[p]); q < m.end(p); q++ {
			for r := range m.V {
				if m.mask(q)>>r&1 > 0 {
					want[slot{p*m.V + r, int(m.ColIdx[q])}] = m.Values[q*m.V+r]
				}
			}
		}
	}
	lists, window, ring := lists(v), int(v.Const("WINDOW")), int(v.Const("STAGE_ROWS"))
	windows := spec.Ceil(m.Cols, window)
	stored := 0
	for i := range len(s.rows) / lists {
		for w := range windows {
			for n := s.ptr[i*windows+w]; n < s.ptr[i*windows+w+1]; n++ {
				for r := range streamRows {
					for k := range stepVectors {
						at := streamSlot(int(n), r, k)
						row := int(s.places[(int(n)*stepVectors+k)*lists+r/m.V]) / swizzle
						top := w*window + window - 1
						col := top - (top-row)%ring
						if col < (w+1-int(v.Const("SPAN")))*window {
							t.Fatalf("segment %d reads row %d", w, col)
						}
						if s.mask[at/32]>>(at%32)&1 == 0 {
							if s.values[at] != 0 {
								t.Fatalf("stream %d, step %d: a value that is no entry", i, n)
							}
							continue
						}
						stored++
						key := slot{int(s.rows[i*lists+r/m.V])*m.V + r%m.V, col}
						if x, ok := want[key]; !ok || x != s.values[at] {
							t.Fatalf("row %d, column %d is %g, want %g", key.row, key.col, s.values[at], x)
						}
						delete(want, key)
					}
				}
			}
		}
	}
	if len(want) > 0 {
		t.Fatalf("%d entries are missing, %d are there", len(want), stored)
	}
}

// TestLaunchStreams: whole clusters, no more than run at once, each with work, whose blocks take few enough streams.
func TestLaunchStreams(t *testing.T) {
	v := Hopper("cvse", dtype.F16, 8)
	rapid.Check(t, func(t *rapid.T) {
		panels, n := rapid.IntRange(0, 5000).Draw(t, "panels"), rapid.IntRange(0, 5000).Draw(t, "columns")
		p := spec.Problem{N: n, Out: dtype.F32, Caps: backend.Caps{Units: rapid.SampledFrom([]int{0, 1, 7, 132}).Draw(t,
			"units")}}
		var params Params
		groups := LaunchStreams(v, &spec.Packed{Work: Work{Panels: panels}}, p,
			func(x Params) []byte { params = x; return nil }).Passes[0].Groups
		cluster := v.Const("CLUSTER")
		tiles := spec.Ceil(spec.Ceil(panels, lists(v)), int(params.Width*cluster)) * spec.Ceil(n, int(v.Const("COLS")))
		clusters := int(groups[0] / cluster)
		if groups[0]%cluster != 0 || groups[1]*groups[2] != 1 || clusters > max(1, p.Caps.Units/int(cluster)) ||
			clusters > tiles || tiles > 0 && clusters == 0 ||
			params.Width < 1 || params.Width > v.Const("WARPS") {
			t.Fatalf("%d tiles on a grid of %v, %d streams a block", tiles, groups, params.Width)
		}
	})
}

// TestStreamsConflicts: as long as all residues of columns mod 8 are as frequent, the eight rows that are read at once
// differ in them, and no step but the last is padded.
func TestStreamsConflicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each := rapid.IntRange(1, 20).Draw(t, "columns of each residue")
		d := dealer{window: 256, span: 3, ring: 1536, cols: 256}
		var cols []uint32
		for i := range 8 * each {
			cols = append(cols, uint32(i))
		}
		s := d.deal([][]uint32{cols})
		if want := spec.Ceil(len(cols), stepVectors); len(s.steps) != want {
			t.Fatalf("%d columns take %d steps, want %d", len(cols), len(s.steps), want)
		}
		for n, step := range s.steps {
			for half := range 2 {
				var banks [8]bool
				for _, place := range step.place[0][8*half:][:8] {
					if banks[place%8] {
						t.Fatalf("step %d reads a bank twice", n)
					}
					banks[place%8] = true
				}
			}
		}
	})
}
