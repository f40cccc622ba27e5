package hrpb_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// BenchmarkMultiply is a graph of co-authors, or the files that SPMM_MATRICES lists, times 128 columns in f32 and tf32
// on every device; csr is the baseline.
func BenchmarkMultiply(b *testing.B) {
	ctx := context.Background()
	files := filepath.SplitList(os.Getenv("SPMM_MATRICES"))
	if len(files) == 0 {
		files = []string{"../../testdata/matrices/ca-CondMat.mtx.gz"}
	}
	for _, d := range backend.Drivers() {
		infos, err := d.Devices(ctx)
		if err != nil || len(infos) == 0 {
			continue
		}
		dev, err := d.Open(ctx, infos[0])
		if err != nil {
			b.Fatal(err)
		}
		defer dev.Close()
		for _, file := range files {
			a, err := load.File(ctx, file, load.Options{})
			if err != nil {
				b.Fatal(err)
			}
			name, _, _ := strings.Cut(filepath.Base(file), ".")
			for _, k := range []*spec.Format{csr.Format, hrpb.Format} {
				for _, v := range k.Variants {
					if v.In.Storage() == dtype.F32 && v.Met(dev.Caps()) {
						b.Run(fmt.Sprintf("%s/%s/%s", name, k.Name, v.Name), func(b *testing.B) { shadertest.Bench(b, dev, k, v, a, 128) })
					}
				}
			}
		}
	}
}
