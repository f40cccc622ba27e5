// How fast the kernels are on every device present.

package hrpb_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is a graph of co-authors, or the files that SPMM_MATRICES lists, times 128 columns in f32 and tf32
// on every device; csr is the baseline.
func BenchmarkMultiply(b *testing.B) {
	files := filepath.SplitList(os.Getenv("SPMM_MATRICES"))
	if len(files) == 0 {
		files = []string{"../../testdata/matrices/ca-CondMat.mtx.gz"}
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		shadertest.BenchMultiply(b, name, func() formats.Sparse {
			a, err := load.File(b.Context(), file, load.Options{})
			if err != nil {
				b.Fatal(err)
			}
			return a
		}, []int{128}, func(v *spec.Variant) bool { return v.In.Storage() == dtype.F32 }, csr.Format, hrpb.Format)
	}
}
