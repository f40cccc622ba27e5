package jigsaw_test

import (
	"encoding/binary"
	"testing"

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
		a := matrix(vectors(rows, k, v, rapid.SampledFrom([]float64{0.003, 0.05, 0.5}).Draw(t, "density")), k)
		for _, v := range jigsaw.Kernel.Variants {
			if v.Code != backend.CodePTX || v.In != dtype.F16 {
				continue
			}
			checkRing(t, a, v)
		}
	})
}

// matrix has a pattern, and ones.
func matrix(pattern [][]int32, k int) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: len(pattern), Cols: k, RowPtr: []int64{0}}
	for _, cols := range pattern {
		for _, c := range cols {
			a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, half.F16From(1))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

func checkRing(t *rapid.T, a *formats.CSR[half.F16], v *spec.Variant) {
	e, err := jigsaw.Kernel.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	m := e.Format.(*format.Matrix[half.F16])
	words := func(i, n int) uint32 { return binary.LittleEndian.Uint32(e.Arrays[i].Data[4*n:]) }
	ring, granule, stages := v.Const("RING"), v.Const("GRANULE"), v.Const("STAGES")
	granules := len(m.BlockPtr) + len(m.StepPtr) + len(m.Order)
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
				if got := words(2, n/2*32+i) >> (16 * (n % 2)) & 0xffff; got != pos%ring {
					t.Fatalf("%s: strip %d, step %d: position %d in row %d of a ring of %d", v.Name, s, n, pos, got, ring)
				}
			}
		}
	}
	if r := m.Reordering(); r.Conflicts != 0 {
		t.Fatalf("%s: %d bank conflicts", v.Name, r.Conflicts)
	}
}

// TestStats: what plan reckons with. Blocks that keep a ring fetch each row of B that they name once.
func TestStats(t *testing.T) {
	a := matrix(shadertest.Spread(64, 64, 32, 16), 64)
	for _, v := range jigsaw.Kernel.Variants {
		if v.In != dtype.F16 {
			continue
		}
		e, err := jigsaw.Kernel.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		staged := v.Const("RING") > 0
		if e.Stats.Staged != staged || staged && e.Stats.Gathers != 64 || e.Stats.StoredBytes <= 0 {
			t.Errorf("%s: %+v", v.Name, e.Stats)
		}
	}
}
