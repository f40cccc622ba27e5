package jigsaw_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// TestRing plays the ring of rows of B that CUDA's kernel keeps: every position that a step uses is in the
// ring's row that the arrays say, in a granule that is filled by then and not given back, and the ring never
// has to hold more granules than it has room for.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, k := rapid.IntRange(1, 600).Draw(t, "rows"), rapid.IntRange(1, 3000).Draw(t, "cols")
		v := rapid.SampledFrom([]int{1, 8}).Draw(t, "rows alike")
		a := shadertest.Ones[half.F16](shadertest.Alike(rows, k, v,
			rapid.SampledFrom([]float64{0.003, 0.05, 0.5}).Draw(t, "density")), k)
		for _, v := range jigsaw.Format.Variants {
			if v.Code != backend.CodePTX || v.In != dtype.F16 {
				continue
			}
			checkRing(t, a, v)
		}
	})
}

func checkRing(t *rapid.T, a *formats.CSR[half.F16], v *spec.Variant) {
	e, err := jigsaw.Format.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	m := e.Format.(*format.Matrix[half.F16])
	words := func(i, n int) uint32 { return binary.LittleEndian.Uint32(e.Arrays[i].Data[4*n:]) }
	ring, granule, stages := v.Const("STAGE_ROWS"), v.Const("GRANULE"), v.Const("STAGES")
	granules := (m.Blocks()*(4+m.BlockTile/format.StripRows) + 1) / 2 * 2
	for s := range m.Strips() {
		freed := uint32(0)
		for n := int(m.StepPtr[s]); n < int(m.StepPtr[s+1]); n++ {
			word := words(0, granules+n)
			least, most := word&0xffff, word>>16
			if least < freed || most >= least+stages {
				t.Fatalf("%s: strip %d, step %d needs granules %d to %d after giving back %d; the ring has %d", v.Name, s, n, least, most, freed, stages)
			}
			freed = least
			for i := range 32 {
				pos := m.BlockColIdx[32*n+i]
				if pos/granule < least || pos/granule > most {
					t.Fatalf("%s: strip %d, step %d uses position %d, granules %d to %d of %d", v.Name, s, n, pos, least, most, granule)
				}
				if got := words(1, n/2*32+i) >> (16 * (n % 2)) & 0xffff; got != pos%ring {
					t.Fatalf("%s: strip %d, step %d: position %d in row %d of a ring of %d", v.Name, s, n, pos, got, ring)
				}
			}
		}
	}
	for b := range m.Blocks() {
		needs := func(n int) (least, most uint32) { return words(0, granules+n) & 0xffff, words(0, granules+n) >> 16 }
		if err := play(m, b, granule, stages, needs, uint64(b)); err != nil {
			t.Fatalf("%s: block %d: %v", v.Name, b, err)
		}
	}
	if r := m.Reordering(); r.Conflicts != 0 {
		t.Fatalf("%s: %d bank conflicts", v.Name, r.Conflicts)
	}
}

// play runs the producer warps and the consumer warps of block b, one action at a time in an order that seed decides,
// and reports a granule that is overwritten while a warp needs it, a barrier that counts a warp for a granule other
// than the one it is at, or that nobody can go on.
func play(m *format.Matrix[half.F16], b int, granule, stages uint32, needs func(n int) (least, most uint32),
	seed uint64) error {
	strips := m.BlockTile / format.StripRows
	total := (m.BlockPtr[b+1] - m.BlockPtr[b] + granule - 1) / granule
	type action struct {
		arrive  bool // else wait until the granule is full
		granule uint32
		reads   uint32 // the least granule that is read from here on
	}
	warps := make([][]action, strips)
	for w := range warps {
		var filled, freed uint32
		fill := func(until uint32) {
			for ; filled < until; filled++ {
				warps[w] = append(warps[w], action{granule: filled, reads: freed})
			}
		}
		free := func(until uint32) {
			for ; freed < until; freed++ {
				fill(freed + 1)
				warps[w] = append(warps[w], action{arrive: true, granule: freed, reads: freed})
			}
		}
		for n := int(m.StepPtr[b*strips+w]); n < int(m.StepPtr[b*strips+w+1]); n++ {
			least, most := needs(n)
			free(least)
			fill(most + 1)
		}
		if total > stages {
			free(total - stages)
		}
	}
	fed := uint32(0)
	arrived, phase := make([]int, stages), make([]uint32, stages)
	rng := rand.New(rand.NewPCG(seed, 1))
	for {
		moved := false
		for _, w := range append(rng.Perm(strips), strips) {
			if w == strips { // the producer warps
				slot := fed % stages
				if fed < total && (fed < stages || phase[slot] == fed/stages) {
					for v, left := range warps {
						if fed >= stages && len(left) > 0 && left[0].reads <= fed-stages {
							return fmt.Errorf("granule %d overwrites %d, which strip %d still reads", fed, fed-stages, v)
						}
					}
					fed++
					moved = true
				}
				continue
			}
			if len(warps[w]) == 0 {
				continue
			}
			a := warps[w][0]
			slot := a.granule % stages
			switch {
			case !a.arrive && a.granule >= fed:
				continue
			case a.arrive && phase[slot] != a.granule/stages:
				return fmt.Errorf("strip %d gives back granule %d in phase %d", w, a.granule, phase[slot])
			case a.arrive:
				if arrived[slot]++; arrived[slot] == strips {
					arrived[slot] = 0
					phase[slot]++
				}
			}
			warps[w] = warps[w][1:]
			moved = true
		}
		if !moved {
			break
		}
	}
	for w, left := range warps {
		if len(left) > 0 || fed < total {
			return fmt.Errorf("%d of %d granules are filled, and strip %d waits to do %+v", fed, total, w, left)
		}
	}
	return nil
}

// TestAdopt: a matrix that is encoded already is taken as it is, if its blocks and its span suit.
func TestAdopt(t *testing.T) {
	a := shadertest.Ones[float32](shadertest.Alike(90, 200, 8, 0.1), 200)
	suite.Packed(t, a, func(v *spec.Variant, e *spec.Packed) {
		m, ok := e.Format.(*format.Matrix[half.F16])
		if !ok {
			return
		}
		got, err := jigsaw.Format.Adopt(m, v)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		} else if d := cmp.Diff(e.Arrays, got.Arrays); d != "" {
			t.Errorf("%s: encoded (-) and adopted (+):\n%s", v.Name, d)
		}
		other := *m
		other.BlockTile = 48
		if _, err := jigsaw.Format.Adopt(&other, v); err == nil {
			t.Errorf("%s takes blocks of 48 rows", v.Name)
		}
		other = *m
		other.Span = 0
		if _, err := jigsaw.Format.Adopt(&other, v); (err == nil) != (v.Const("STAGE_ROWS") == 0) {
			t.Errorf("%s, any span: error %v", v.Name, err)
		}
	})
	f32, err := format.Encode(a, format.Options{BlockTile: 16})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jigsaw.Format.Adopt(f32, jigsaw.Format.Variants[0]); err == nil {
		t.Error("another element type is taken")
	}
}

// TestStats: what plan reckons with. Blocks that keep a ring fetch each row of B that they name once.
func TestStats(t *testing.T) {
	a := shadertest.Ones[float32](shadertest.Spread(64, 64, 32, 16), 64)
	suite.Packed(t, a, func(v *spec.Variant, e *spec.Packed) {
		staged := v.Const("STAGE_ROWS") > 0
		if e.Stats.Staged != staged || staged && e.Stats.Gathers != 64 || e.Stats.StoredBytes <= 0 {
			t.Errorf("%s: %+v", v.Name, e.Stats)
		}
	})
}
