package shaders_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Every format that is multiplied from has a container, and the other way round.
func TestFormatsHaveContainers(t *testing.T) {
	var multiplied, held []string
	for _, f := range shaders.Formats() {
		multiplied = append(multiplied, f.Name)
	}
	for _, f := range load.Formats() {
		held = append(held, f.Name)
	}
	slices.Sort(multiplied)
	slices.Sort(held)
	if !slices.Equal(multiplied, held) {
		t.Errorf("shaders.Formats has %q, load.Formats %q", multiplied, held)
	}
}

// A matrix that was encoded for a variant becomes the same arrays when it is adopted, and one of another
// type is refused.
func TestAdopt(t *testing.T) {
	var as []*formats.CSR[float32] // the first that a format takes
	for _, spec := range []string{"gen:vector,rows=203,cols=300,v=4,density=0.1",
		"gen:nm,rows=203,cols=300,n=2,m=16,v=128", "gen:uniform,rows=203,cols=300,density=1"} {
		a, err := gen.CSR(spec)
		if err != nil {
			t.Fatal(err)
		}
		as = append(as, a)
	}
	adopting := 0
	for _, k := range shaders.Formats() {
		if k.Adopt == nil {
			continue
		}
		adopting++
		as := as
		if k.Full { // others are not of the format
			as = as[2:]
		}
		for _, v := range k.Variants {
			if v.Quant != dtype.Invalid {
				continue // encoded as a formats.Quantised, which is packed for each device
			}
			t.Run(k.Name+" "+v.Name, func(t *testing.T) {
				want, err := k.Encode(formats.ConvertTo(as[0], v.In), v)
				for _, a := range as[1:] {
					if errors.Is(err, backend.ErrUnsupported) {
						want, err = k.Encode(formats.ConvertTo(a, v.In), v)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				m := want.Format.(formats.Encoded)
				got, err := k.Adopt(m, v)
				if err != nil {
					t.Fatal(err)
				}
				same := func(x, y spec.Array) bool { return x.Name == y.Name && bytes.Equal(x.Data, y.Data) }
				if !slices.EqualFunc(want.Arrays, got.Arrays, same) {
					t.Error("other arrays")
				}
				if want.Stats != got.Stats || want.NNZ != got.NNZ || want.Rows != got.Rows || want.Cols != got.Cols {
					t.Errorf("%d×%d, %d entries, %+v; want %+v", got.Rows, got.Cols, got.NNZ, got.Stats, want.Stats)
				}
				other := dtype.F16
				if v.In == other {
					other = dtype.F32
				}
				for _, v := range k.Variants {
					if v.In.Storage() == other {
						if _, err := k.Adopt(m, v); err == nil {
							t.Errorf("adopted by %s", v.Name)
						}
						return
					}
				}
			})
		}
	}
	if adopting == 0 {
		t.Error("no kernel adopts anything")
	}
}
