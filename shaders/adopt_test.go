package shaders_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/shaders"
)

// A matrix that was encoded for a variant becomes the same arrays when it is adopted, and one of another
// type is refused.
func TestAdopt(t *testing.T) {
	a, err := gen.CSR("gen:vector,rows=203,cols=300,v=4,density=0.1")
	if err != nil {
		t.Fatal(err)
	}
	adopting := 0
	for _, k := range shaders.Formats() {
		if k.Adopt == nil {
			continue
		}
		adopting++
		for _, v := range k.Variants {
			t.Run(k.Name+" "+v.Name, func(t *testing.T) {
				want, err := k.Encode(formats.ConvertTo(a, v.In), v)
				if err != nil {
					t.Fatal(err)
				}
				m := want.Format.(formats.Encoded)
				got, err := k.Adopt(m, v)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want.Arrays, got.Arrays); d != "" || want.Stats != got.Stats || want.NNZ != got.NNZ || want.Rows != got.Rows || want.Cols != got.Cols {
					t.Errorf("%+v, want %+v; arrays:\n%s", got.Stats, want.Stats, d)
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
