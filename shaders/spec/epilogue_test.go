// The word `store` says all that there is to say, and is 0 where there is nothing.

package spec_test

import (
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

func TestStoreWord(t *testing.T) {
	if w := (spec.Problem{Out: dtype.F32}).StoreWord(); w != 0 {
		t.Errorf("an f32 C without an epilogue is stored as %#x, not 0", w)
	}
	seen := map[uint32]bool{}
	for elem, out := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		for bias := spec.NoBias; bias <= spec.ColBias; bias++ {
			for act := spec.NoActivation; act <= spec.SiLU; act++ {
				for _, shift := range []uint32{0, 3, 15} {
					e := spec.Epilogue{Bias: bias, BiasShift: shift, Activation: act}
					if bias == spec.NoBias && shift > 0 { // of a bias that is not there
						if (spec.Problem{Out: out, Epilogue: e}).StoreWord()>>8 != 0 {
							t.Errorf("%+v has a shift", e)
						}
						continue
					}
					w := spec.Problem{Out: out, Epilogue: e}.StoreWord()
					if got, gotE := spec.Stored(w); got != uint32(elem) || gotE != e || seen[w] {
						t.Errorf("%v, %+v is stored as %#x, which says %d, %+v", out, e, w, got, gotE)
					}
					seen[w] = true
				}
			}
		}
	}
	if got := (spec.Epilogue{Bias: spec.ColBias, Activation: spec.GELU}).String(); got != "bias-col/gelu" {
		t.Errorf("an epilogue is named %q", got)
	}
}
