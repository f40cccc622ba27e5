// New values: all that a plan has on the device becomes what a fresh one has.

package plan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/reproducible"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/internal/tensor"
	"github.com/spmmrun/spmm/internal/values"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// limited binds no more than a number of bytes.
type limited struct {
	backend.Device
	most int64
}

func (d limited) Caps() backend.Caps {
	c := d.Device.Caps()
	c.MaxBinding = d.most
	return c
}

// eachDevice calls f with an opened device of each driver that has one, by itself and binding little.
func eachDevice(t *testing.T, f func(t *testing.T, d *device.Device)) {
	t.Setenv("SPMM_CACHE", t.TempDir())
	ctx := t.Context()
	for _, driver := range backend.Drivers() {
		infos, err := driver.Devices(ctx)
		if err != nil {
			t.Logf("%s: %v", driver.Name(), err)
			continue
		}
		for _, most := range []int64{0, 5000} {
			t.Run(fmt.Sprintf("%s/%d", driver.Name(), most), func(t *testing.T) {
				t.Attr("device", infos[0].String())
				dev, err := driver.Open(ctx, infos[0])
				if err != nil {
					t.Fatal(err)
				}
				defer dev.Close()
				if most > 0 {
					dev = limited{dev, most}
				}
				f(t, device.New(dev))
			})
		}
	}
}

// pattern returns a matrix with a full row, empty rows, and zeros that are stored; of N:M = 2:4 if sparse24.
func pattern(r *rand.Rand, rows, cols, every int, sparse24 bool) *formats.CSR[float32] {
	a := &formats.CSR[float32]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	for i := range rows {
		for j := range cols {
			keep := i == rows/2 || i%5 != 0 && r.IntN(every) == 0
			if sparse24 {
				keep = (j+i)%4 < 2
			}
			if keep {
				a.ColIdx = append(a.ColIdx, int32(j))
			}
		}
		a.RowPtr[i+1] = int64(len(a.ColIdx))
	}
	a.Val = fresh(r, len(a.ColIdx))
	return a
}

// full returns a matrix that stores every element.
func full(r *rand.Rand, rows, cols int) *formats.CSR[float32] {
	return (&formats.Dense[float32]{Rows: rows, Cols: cols, LD: cols,
		Data: fresh(r, rows*cols)}).Sparse().(*formats.CSR[float32])
}

// fresh returns n values, some of them 0.
func fresh(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		if r.IntN(8) > 0 {
			v[i] = float32(r.NormFloat64())
		}
	}
	return v
}

// values returns the values of a matrix as bytes.
func valuesOf(a formats.Sparse) values.Host {
	return formats.Dispatch(a, bytesOf[half.F16], bytesOf[half.BF16], bytesOf[float32], bytesOf[float64])
}

func bytesOf[T formats.Value](a *formats.CSR[T]) values.Host {
	return values.Host{Type: formats.TypeOf[T](), Data: backend.Bytes(a.Val)}
}

// byColumns returns a as CSC.
func byColumns[T formats.Value](a *formats.CSR[T]) formats.Encoded {
	at := a.Transpose()
	return &formats.CSC[T]{Rows: a.Rows, Cols: a.Cols, ColPtr: at.RowPtr, RowIdx: at.ColIdx, Val: at.Val}
}

// contents returns what a plan has on its device, for AutoP at one precision.
func contents(t *testing.T, p *Plan) [][]byte {
	t.Helper()
	var m *resident.Matrix
	switch e := p.exec.(type) {
	case *fast:
		m = e.Matrix
	case *reproducible.Executor:
		if err := e.At(t.Context(), rfx.P31); err != nil {
			t.Fatal(err)
		}
		m = e.Matrix
	}
	var all [][]byte
	for _, part := range m.Parts {
		for _, b := range part.Buffers {
			x := make([]byte, b.Size())
			if err := b.Read(t.Context(), 0, x); err != nil {
				t.Fatal(err)
			}
			all = append(all, x)
		}
	}
	return all
}

// checkSet sets values in every way in a plan for a, and holds it against one for b, which has these values. It returns
// in how many row ranges the plan has the matrix, 0 if a cannot be prepared so.
func checkSet(t *testing.T, d *device.Device, o work.Work, f work.Form, a, b formats.Encoded,
	given formats.Sparse) (parts int) {
	t.Helper()
	ctx := t.Context()
	p, err := New(ctx, d, a, o, f)
	if work.Refusal(err) {
		return 0
	}
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	defer p.Close()
	q, err := New(ctx, d, b, o, f)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	defer q.Close()
	old, want := contents(t, p), contents(t, q)
	differ := func(what string) {
		t.Helper()
		got := contents(t, p)
		if len(got) != len(want) {
			t.Fatalf("%s/%s: %d arrays, want %d", p.Format, p.Variant, len(got), len(want))
		}
		for i := range got {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("%s/%s, %+v, %s: array %d of %d differs", p.Format, p.Variant, o, what, i, len(got))
			}
		}
	}
	v := valuesOf(given)
	if err := p.SetHostValues(ctx, v); err != nil {
		t.Fatalf("%s/%s: %v", p.Format, p.Variant, err)
	}
	differ("from the host")
	n := v.Len()
	for _, s := range []tensor.Shape{
		{Rows: 1, Cols: n}, {Rows: n, Cols: 1, ColMajor: true}, {Rows: 1, Cols: n, ColMajor: true}, {Rows: n, Cols: 1},
		{Rows: 1, Cols: n, ColBlock: 1000}, {Rows: n, Cols: 1, RowBlock: 344},
	} {
		s.Type = v.Type
		x, err := tensor.New(d, s)
		if err != nil {
			if errors.Is(err, backend.ErrUnsupported) { // larger than the device binds
				continue
			}
			t.Fatal(err)
		}
		defer x.Close()
		h := tensor.Host{Data: v.Data, LD: n, ColMajor: s.Rows != 1}
		if err := x.Write(ctx, h); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			was := valuesOf(a.Sparse())
			if formats.ByColumns(a) {
				was = valuesOf(formats.Transpose(a).Sparse())
			}
			if err := p.SetHostValues(ctx, was); err != nil {
				t.Fatal(err)
			}
			if o.P != work.AutoP {
				for i, x := range contents(t, p) {
					if !bytes.Equal(x, old[i]) {
						t.Fatalf("%s/%s, %+v: the old values again: array %d differs", p.Format, p.Variant, o, i)
					}
				}
			}
			if err := p.SetValues(ctx, x); err != nil {
				t.Fatalf("%s/%s: %v", p.Format, p.Variant, err)
			}
			differ(fmt.Sprintf("from a tensor %+v", s))
		}
	}
	return (p.Rows + p.rowBlock - 1) / max(1, p.rowBlock)
}

func TestSetValues(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device.Device) {
		r := rand.New(rand.NewPCG(1, 2))
		parts := map[string]int{} // most of a format
		for _, a := range []*formats.CSR[float32]{
			pattern(r, 150, 90, 6, false), pattern(r, 160, 30, 3, false), pattern(r, 67, 130, 2, true),
			pattern(r, 1, 40, 2, false), pattern(r, 40, 1, 2, false), pattern(r, 0, 3, 1, false), full(r, 75, 45),
		} {
			b := &formats.CSR[float32]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: fresh(r, len(a.Val))}
			for _, k := range shaders.Formats() {
				for _, v := range packings(k, d.Caps()) {
					o := work.Work{Format: k.Name, Variant: v.Name, Precision: v.In}
					parts[k.Name] = max(parts[k.Name], checkSet(t, d, o, work.Form{}, a, b, b))
					checkSet(t, d, o, work.Form{Transpose: true}, a, b, b)
				}
			}
		}
		for _, k := range shaders.Formats() {
			if len(packings(k, d.Caps())) == 0 {
				continue // the device has no kernel for it
			}
			if n := parts[k.Name]; n == 0 || n == 1 && d.Limit() == 5000 {
				t.Errorf("format %s was looked at in %d row ranges at most", k.Name, n)
			}
		}
	})
}

// packings returns a variant for each way in which a device has matrices packed.
func packings(k *spec.Format, caps backend.Caps) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range k.Variants {
		if v.Met(caps) && !slices.ContainsFunc(vs, func(x *spec.Variant) bool { return k.SamePacking(x, v) }) {
			vs = append(vs, v)
		}
	}
	return vs
}

// In the types of A and of the values, of what was given by columns, of what came encoded, and in reproducible mode.
func TestSetValuesOf(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device.Device) {
		r := rand.New(rand.NewPCG(3, 4))
		a := pattern(r, 130, 70, 5, false)
		b := &formats.CSR[float32]{Rows: a.Rows, Cols: a.Cols, RowPtr: a.RowPtr, ColIdx: a.ColIdx, Val: fresh(r, len(a.Val))}
		turned := &formats.CSR[float32]{Val: b.Transpose().Val}
		for _, o := range []work.Work{
			{}, {Format: "csr", Precision: dtype.F16}, {Format: "cvse", Precision: dtype.BF16},
			{Format: "hrpb", Precision: dtype.F32},
			{P: rfx.P15}, {P: rfx.P23, Format: "csr"}, {P: rfx.P31, Format: "tiledcsr"},
			{P: rfx.P47},
			{P: work.AutoP}, {P: rfx.P23, Precision: dtype.F16},
		} {
			as := work.Form{}
			checkSet(t, d, o, as, a, b, b)
			checkSet(t, d, o, as, byColumns(a), byColumns(b), turned)
			checkSet(t, d, o, as, formats.Convert[half.BF16](a), formats.Convert[half.BF16](b), formats.Convert[half.BF16](b))
			as.Transpose = true
			checkSet(t, d, o, as, a, b, b)
			checkSet(t, d, o, as, byColumns(a), byColumns(b), turned)
		}
		for _, k := range shaders.Formats() {
			for _, v := range packings(k, d.Caps()) {
				checkAdopted(t, d, k, v, a, b)
			}
		}
	})
}

// checkAdopted sets values of a matrix that came encoded, and was spoiled after it was prepared.
func checkAdopted(t *testing.T, d *device.Device, k *spec.Format, v *spec.Variant, a, b *formats.CSR[float32]) {
	t.Helper()
	pack := func(m *formats.CSR[float32]) formats.Encoded {
		e, err := k.Encode(formats.ConvertTo(m, v.In.Storage()), v)
		if err != nil {
			return nil
		}
		f, _ := e.Format.(formats.Encoded)
		return f
	}
	packed, want := pack(a), pack(b)
	if packed == nil {
		return
	}
	o := work.Work{Format: k.Name, Variant: v.Name, Precision: v.In}
	checkSet(t, d, o, work.Form{}, packed, want, formats.ConvertTo(b, v.In.Storage()))
	p, err := New(t.Context(), d, packed, o, work.Form{})
	if work.Refusal(err) { // too large for the device
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	q, err := New(t.Context(), d, want, o, work.Form{})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, f := range formats.NewContainer(packed).Arrays {
		if x, ok := f.Data.([]uint32); ok {
			for i := range x {
				x[i] = 7
			}
		}
	}
	if err := p.SetHostValues(t.Context(), valuesOf(b)); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(contents(t, p), contents(t, q), bytes.Equal) {
		t.Errorf("%s/%s: a matrix that came encoded and was changed later takes values differently", k.Name, v.Name)
	}
}

func TestSetValuesRefuses(t *testing.T) {
	eachDevice(t, func(t *testing.T, d *device.Device) {
		ctx := t.Context()
		a := pattern(rand.New(rand.NewPCG(5, 6)), 30, 20, 4, false)
		p, err := New(ctx, d, a, work.Work{}, work.Form{})
		if err != nil {
			t.Fatal(err)
		}
		n := len(a.Val)
		if err := p.SetHostValues(ctx, values.Host{Type: dtype.F32, Data: make([]byte, 4*n-4)}); err == nil {
			t.Error("too few values are taken")
		}
		if err := p.SetValues(ctx, nil); err == nil {
			t.Error("no tensor is taken")
		}
		for _, s := range []tensor.Shape{{Rows: 1, Cols: n + 1}, {Rows: 2, Cols: n}, {Rows: 0, Cols: n}} {
			s.Type = dtype.F32
			x, err := tensor.New(d, s)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.SetValues(ctx, x); err == nil {
				t.Errorf("%d×%d values for %d entries are taken", s.Rows, s.Cols, n)
			}
			x.Close()
		}
		x, err := tensor.New(d, tensor.Shape{Rows: 1, Cols: n, Type: dtype.F16})
		if err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithCancel(ctx)
		cancel()
		if err := p.SetValues(cancelled, x); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if err := p.SetHostValues(cancelled, valuesOf(a)); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		if err := p.SetValues(ctx, x); err != nil {
			t.Error(err)
		}
		x.Close()
		if err := p.SetValues(ctx, x); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("a closed tensor: %v", err)
		}
		p.Close()
		if err := p.SetHostValues(ctx, valuesOf(a)); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("a closed plan: %v", err)
		}
	})
}
