// The table of docs/tiledcsr.md, held against the code:
//
//	go test ./formats/tiledcsr -run TestTable -write

package tiledcsr_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
	"github.com/spmmrun/spmm/formats/tiledcsr"
)

var write = flag.Bool("write", false, "write the table of docs/tiledcsr.md")

// paper is the gain that the paper states.
var paper = map[int]string{50: "3.89", 90: "1.82"}

func TestTable(t *testing.T) {
	formatstest.Table(t, "../../docs/tiledcsr.md", table(t), *write)
}

// table measures masks in the shapes of a transformer's matrices.
func table(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| zeros | paper | uniform: SR-BCRS | in order | shuffled | gain | jitter: SR-BCRS | in order | shuffled | gain |\n")
	b.WriteString("|" + strings.Repeat(" --- |", 10) + "\n")
	for _, zeros := range []int{50, 60, 70, 80, 90, 95, 98} {
		fmt.Fprintf(&b, "| %d %% | %s |", zeros, paper[zeros])
		for _, jitter := range []string{"0", "0.9"} {
			var sums [3]float64
			shapes := []string{"rows=512,cols=512", "rows=2048,cols=512", "rows=512,cols=2048"}
			for _, shape := range shapes {
				a, err := gen.CSR(fmt.Sprintf("gen:uniform,%s,sparsity=%v,jitter=%s,seed=%d", shape, float64(zeros)/100, jitter, zeros))
				if err != nil {
					t.Fatal(err)
				}
				for i, u := range utilisations(t, a) {
					sums[i] += u / float64(len(shapes))
				}
			}
			fmt.Fprintf(&b, " %.1f %% | %.1f %% | %.1f %% | %.2f |", 100*sums[0], 100*sums[1], 100*sums[2], sums[2]/sums[0])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// utilisations returns which part of the matrix unit's multiply-adds is of stored entries: in SR-BCRS, where each
// row alone is padded to whole strides and takes one of eight rows of a tile; in groups of rows as they
// come; and in groups of shuffled rows.
func utilisations(t *testing.T, a *formats.CSR[float32]) (u [3]float64) {
	slots := 0
	for i := range a.Rows {
		slots += int(a.RowPtr[i+1]-a.RowPtr[i]+tiledcsr.TileCols-1) / tiledcsr.TileCols * tiledcsr.TileCols * 8
	}
	u[0] = float64(a.NNZ()) / float64(slots)
	for i, keep := range []bool{true, false} {
		m, err := tiledcsr.Encode(a, tiledcsr.Options{Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		u[1+i] = m.Stats().Fill
	}
	return u
}
