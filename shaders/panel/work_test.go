// Work lists: what they cover, and launches of them.

package panel

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// drawPanels makes panels of multiples of align vectors, one after the other. Some are heavy.
func drawPanels(t *rapid.T, align uint32) []Span {
	var panels []Span
	first := uint32(0)
	for i := range uint32(rapid.IntRange(0, 60).Draw(t, "panels")) {
		most := rapid.SampledFrom([]uint32{0, 3, 20, 1000}).Draw(t, "most vectors")
		last := first + align*rapid.Uint32Range(0, most).Draw(t, "vectors")
		panels = append(panels, Span{first, last, 8 * i})
		first = last
	}
	return panels
}

// records reads those of a work list.
func records(list []uint32, from, to int) (rs []record) {
	for i := from; i < to; i++ {
		w := list[recordWords*i:][:recordWords]
		rs = append(rs, record{Span{w[0], w[1], w[2]}, w[3]})
	}
	return rs
}

// TestWorkList: records of each panel are together all of it, in order; its slots follow each other; only heavy panels
// are cut, in parts of whole mask words that balance.
func TestWorkList(t *testing.T) {
	v := CUDA("cvse", "scalar.cu", "x", dtype.F32, 4, []spec.Const{spec.Define("V", 8)})
	rapid.Check(t, func(t *rapid.T) {
		panels := drawPanels(t, rapid.SampledFrom([]uint32{1, 4, 16}).Draw(t, "align"))
		rows := rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "words of the format's own")
		e := &spec.Packed{}
		list, err := newWork(e, v, panels, rows)
		if err != nil {
			t.Fatal(err)
		}
		w := e.Work.(Work)
		if len(list) != w.Places+len(rows) || e.Items != int64(w.Parts) || w.Panels != len(panels) {
			t.Fatalf("%d words, %d items, %+v", len(list), e.Items, w)
		}
		for i, x := range rows {
			if list[w.Places+i] != x {
				t.Fatalf("word %d of the format's own is %d, want %d", i, list[w.Places+i], x)
			}
		}
		parts, slot, heavy := records(list, 0, w.Parts), uint32(0), 0
		for _, s := range panels {
			at, first := s.First, slot
			for ; len(parts) > 0 && parts[0].Rows == s.Rows; parts = parts[1:] {
				r := parts[0]
				if r.First != at || r.Last > s.Last || r.slot != spec.NoSlot && r.slot != slot ||
					(r.slot == spec.NoSlot) != (r.Span == s) {
					t.Fatalf("record %+v of panel %+v, of which %d to %d is done, slots to %d", r, s, s.First, at, slot)
				}
				if n := r.Last - r.First; r.slot != spec.NoSlot &&
					(int64(n) >= e.Stats.Cut+maskWord || r.Last < s.Last && (n%maskWord != 0 || n < leastPart/4)) {
					t.Fatalf("a part of %d vectors; panels are cut from %d on", n, e.Stats.Cut)
				}
				if at = r.Last; r.slot != spec.NoSlot {
					slot++
				}
			}
			if at != s.Last {
				t.Fatalf("panel %+v is done to %d", s, at)
			}
			if slot == first {
				continue
			}
			sum := records(list, w.Parts+w.Panels+heavy, w.Parts+w.Panels+heavy+2)
			if sum[0] != (record{s, first}) || sum[1].slot != slot {
				t.Fatalf("panel %+v has slots %d to %d, in the list %+v", s, first, slot, sum)
			}
			heavy++
		}
		if heavy != w.Heavy || int(slot) != w.Slots || len(parts) > 0 {
			t.Fatalf("%d heavy panels, %d slots, %d records too many, %+v", heavy, slot, len(parts), w)
		}
		if heavy > 0 {
			for i, r := range records(list, w.Parts, w.Parts+w.Panels) {
				if r != (record{panels[i], spec.NoSlot}) {
					t.Fatalf("panel %d is %+v whole, want %+v", i, r, panels[i])
				}
			}
		}
	})
}

// TestUniformIsWhole: panels that are all about as heavy are not cut, however heavy they are.
func TestUniformIsWhole(t *testing.T) {
	v := CUDA("cvse", "scalar.cu", "x", dtype.F32, 4, []spec.Const{spec.Define("V", 8)})
	var panels []Span
	for i := range uint32(100) {
		panels = append(panels, Span{10000 * i, 10000*i + 5000 + 50*i, 8 * i})
	}
	e := &spec.Packed{}
	if _, err := newWork(e, v, panels, nil); err != nil {
		t.Fatal(err)
	}
	if w := e.Work.(Work); w.Heavy != 0 || w.Parts != 100 || e.Stats.Longest != 9950 {
		t.Errorf("%+v, stats %+v", w, e.Stats)
	}
}

// TestLaunchWork: sums of parts are added up by a second pass, whose workspace has room for them; where that would be
// too large, panels are taken whole.
func TestLaunchWork(t *testing.T) {
	v := Scalar("cvse", 8, 0)
	wgpu := &spec.Variant{Code: backend.CodeWGSL, Local: v.Local, Shape: v.Shape}
	panels := []Span{{0, 9000, 0}, {9000, 9001, 8}, {9001, 9002, 16}, {9002, 9003, 24}, {9003, 9004, 32}}
	e := &spec.Packed{Stats: formats.Stats{}}
	if _, err := newWork(e, v, panels, nil); err != nil {
		t.Fatal(err)
	}
	w := e.Work.(Work)
	if w.Heavy != 1 || w.Slots < 9000/leastPart {
		t.Fatalf("%+v", w)
	}
	for _, test := range []struct {
		name   string
		v      *spec.Variant
		n      int
		limit  int64
		passes int
	}{
		{"as usual", v, 100, 0, 2},
		{"no columns", v, 0, 0, 2},
		{"too many columns", v, 1 << 20, 0, 1},
		{"a device that binds little", wgpu, 100, 4096, 1},
		{"a device that binds enough", wgpu, 100, 1 << 20, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := spec.Problem{M: 40, K: 9004, N: test.n, LDB: test.n, LDC: test.n, Out: dtype.F32,
				Caps: backend.Caps{MaxBinding: test.limit}}
			var params []Params
			l, err := Launch(test.v, e, p, func(n int) ([3]uint32, error) {
				return [3]uint32{uint32(n), 1, 1}, nil
			}, func(x Params) []byte {
				params = append(params, x)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Passes) != test.passes {
				t.Fatalf("%d passes, want %d", len(l.Passes), test.passes)
			}
			if test.passes == 1 {
				if x := params[0]; x.Panels != 5 || int(x.Start) != w.Parts || l.Workspace != spec.NoWorkspace ||
					l.Passes[0].Groups[0] != 5 {
					t.Errorf("%+v on %v, a workspace of %d bytes", x, l.Passes[0].Groups, l.Workspace)
				}
				return
			}
			ld := (test.n + 7) / 8 * 8
			if want := max(spec.NoWorkspace, int64(w.Slots)*8*int64(ld)*4); l.Workspace != want {
				t.Errorf("a workspace of %d bytes, want %d", l.Workspace, want)
			}
			if x := params[0]; x.Phase != 0 || int(x.Panels) != w.Parts || x.Start != 0 {
				t.Errorf("first %+v", x)
			}
			x, groups := params[1], l.Passes[1].Groups
			if x.Phase != 1 || x.Panels != 1 || int(x.Start) != w.Parts+w.Panels || int(groups[1]*v.Local[0]) < 8*ld/4 ||
				test.n > 0 && groups[0] != 1 {
				t.Errorf("second %+v on %v", x, groups)
			}
		})
	}
}
