package plan

import (
	"errors"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
	"github.com/spmmrun/spmm/shaders"
)

// A matrix that comes packed for a kernel is brought onto the device without being decoded.
func TestNothingDecoded(t *testing.T) {
	drv, err := backend.Find("cpu")
	if err != nil {
		t.Fatal(err)
	}
	cpu, err := drv.Open(t.Context(), backend.Info{Backend: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	d := device.New(cpu)
	defer d.Close()
	a, err := gen.CSR("gen:nm,rows=256,cols=128,n=2,m=4")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shaders.Formats() {
		if f.Adopt == nil {
			continue
		}
		w, err := work.Work{Format: f.Name}.Resolve(formats.Convert[half.F16](a), work.Form{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Encode(t.Context(), d, w)
		if errors.Is(err, formats.ErrNotFull) {
			e, err = formats.NewDense[half.F16](256, 128), nil
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []work.Work{{}, {Format: f.Name}} {
			w, err := o.Resolve(e, work.Form{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := Prepare(t.Context(), d, w)
			if err != nil {
				t.Fatal(err)
			}
			if p.Format != f.Name || w.A.IsDecoded() {
				t.Errorf("%s, options %+v: taken as %s because %s, decoded: %v", f.Name, o, p.Format, p.Why, w.A.IsDecoded())
			}
			p.Close()
		}
		w, err = work.Work{Precision: dtype.F32}.Resolve(e, work.Form{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(t.Context(), d, w)
		if err != nil {
			t.Fatal(err)
		}
		if w.A.IsDecoded() != (f.Name != "dense") || p.Precision != dtype.F32 { // of a dense matrix elements are converted
			t.Errorf("%s: in another precision %v, decoded: %v", f.Name, p.Precision, w.A.IsDecoded())
		}
		p.Close()
	}
}
