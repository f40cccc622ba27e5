// New values of A in fixed point, on every device present, for every packing of kernel rfx: what that packs on the
// host.

package requantise_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	p "github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/requantise"
	"github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// pattern returns a matrix with a long row, empty rows, and a last row that is short or empty.
func pattern(r *rand.Rand, rows, cols int) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		for j := range cols {
			if i == rows/3 || i%4 != 1 && r.IntN(9) == 0 {
				a.ColIdx = append(a.ColIdx, int32(j))
			}
		}
		a.RowPtr[i+1] = int64(len(a.ColIdx))
	}
	a.Val = numbers(r, len(a.ColIdx))
	return a
}

// numbers returns normal numbers of many magnitudes, zeros, subnormal ones, infinities and NaN.
func numbers(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(r.NormFloat64(), r.IntN(24)-12))
		switch r.IntN(40) {
		case 0:
			v[i] = float32(math.Copysign(0, -1))
		case 1:
			v[i] = math.Float32frombits(r.Uint32() >> 10)
		case 2:
			v[i] = float32(math.Inf(r.IntN(2)*2 - 1))
		case 3:
			v[i] = float32(math.NaN())
		}
	}
	return v
}

func TestRequantise(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		v, err := requantise.Variant(dev.Caps())
		if err != nil {
			t.Fatal(err)
		}
		var done []*spec.Variant
		for _, of := range rfx.Format.Variants {
			if slices.ContainsFunc(done, func(x *spec.Variant) bool { return rfx.Format.SamePacking(x, of) }) {
				continue
			}
			done = append(done, of)
			planes := of.Before != nil || of.Unit.Source == "few.comp"
			if c := dev.Caps(); planes && (c.Code != of.Code || c.Code == backend.CodeSPIRV && !c.Int8) {
				continue // planes lie otherwise there, or there are none
			}
			for i, typ := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
				r := rand.New(rand.NewPCG(uint64(len(done)), uint64(i)))
				for _, size := range [][2]int{{70, 130}, {1, 1}, {300, 7}, {9, 1000}, {5, 0}} {
					t.Run(fmt.Sprintf("%s/%v/%d×%d", of.Name, typ, size[0], size[1]), func(t *testing.T) {
						test(t, dev, v, of, typ, pattern(r, size[0], size[1]), r)
					})
				}
			}
		}
	})
}

func test(t *testing.T, dev backend.Device, v, of *spec.Variant, typ dtype.Type, m *formats.CSR[float32],
	r *rand.Rand) {
	a := formats.ConvertTo(m, typ)
	m.Val = numbers(r, len(m.Val))
	b := formats.ConvertTo(m, typ)
	was, err := rfx.Format.Encode(a, of)
	if of.Kind.Name == "stationary" && of.Const("BITS") > 23 && typ == dtype.F32 {
		shadertest.Refused(t, of.Name, err, true)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want, err := rfx.Format.Encode(b, of)
	if err != nil {
		t.Fatal(err)
	}
	slots, err := rfx.Slots(a, of)
	if err != nil {
		t.Fatal(err)
	}
	f := was.Format.(rfx.Split)
	inStrips, inPairs := of.Const("RING") > 0, of.Const("STAGE") > 0
	if (inStrips || inPairs) && v.Code != backend.CodePTX && v.Code != backend.CodeGo {
		_, err := requantise.Launch(v, requantise.Op{P: p.P23, Type: typ, Strips: inStrips, Pairs: inPairs})
		shadertest.Refused(t, of.Name, err, true)
		return
	}
	if of.Const("V") > 0 && of.Const("BITS") == uint32(p.P47) && v.Code != backend.CodePTX && v.Code != backend.CodeGo {
		_, err := requantise.Launch(v, requantise.Op{P: p.P47, Type: typ, V: int(of.Const("V"))})
		shadertest.Refused(t, of.Name, err, true)
		return
	}
	l, err := requantise.Launch(v, requantise.Op{
		Strips: inStrips, Pairs: inPairs,
		Rows: int64(m.Rows), NNZ: a.NNZ(), Type: typ, P: p.P(of.Const("BITS")), V: int(of.Const("V")),
		Slots: int64(len(slots)),
		Planes: requantise.Planes{Count: f.Planes, Cols: m.Cols, Columns: f.Columns, Weights: f.Weights,
			Remainder: f.RemainderEntries(m.Rows)},
	})
	if err != nil {
		t.Fatal(err)
	}
	shadertest.Fold(requantise.Program, &l)
	data := func(e *spec.Packed, name string) []byte {
		return bytes.Clone(e.Arrays[rfx.Format.Arg(name)].Data)
	}
	rows, ints := data(was, "rows"), data(was, "ints")
	shadertest.Run(t, dev, requantise.Program, l, data(want, "values"), backend.Bytes(append(slots, make([]uint32, 4)...)),
		rows, ints)
	if !bytes.Equal(rows, data(want, "rows")) {
		t.Error("wrong ranges of rows")
	}
	if !bytes.Equal(ints, data(want, "ints")) {
		t.Error("wrong integers")
	}
}

func TestRefuses(t *testing.T) {
	v := requantise.Program.Variants[0]
	for _, op := range []requantise.Op{
		{Rows: -1, P: p.P23, Type: dtype.F16}, {Rows: 1, P: 24, Type: dtype.F16},
		{Rows: 8, P: p.P23, V: 8, Slots: 100, Type: dtype.F32},
	} {
		if _, err := requantise.Launch(v, op); err == nil {
			t.Errorf("%+v is taken", op)
		}
	}
	for _, v := range requantise.Program.Variants {
		if v.Code == backend.CodeSPIRV || v.Code == backend.CodeWGSL {
			_, err := requantise.Launch(v, requantise.Op{Rows: 8, P: p.P47, V: 8, Slots: 256, Type: dtype.F32})
			shadertest.Refused(t, v.Name+" panels at p = 47", err, true)
		}
	}
	_, err := requantise.Launch(v, requantise.Op{Rows: 1, NNZ: 1 << 33, P: p.P23, Type: dtype.F16})
	shadertest.Refused(t, "too many entries", err, true)
}
