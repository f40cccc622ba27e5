// What readers of files are tested by.

package formatstest

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/safetensors"
)

// Uniform makes a matrix of up to these numbers of rows and columns, by the spec gen:uniform with some more keys.
func Uniform(t *rapid.T, most int, keys string) *formats.CSR[float32] {
	a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%v,seed=%d%s",
		rapid.IntRange(0, most).Draw(t, "rows"), rapid.IntRange(0, most).Draw(t, "cols"),
		rapid.Float64Range(0, 1).Draw(t, "density"), rapid.Uint64().Draw(t, "seed"), keys))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Filed returns what is read of a file that m is written to, which is of a format.
func Filed(t rapid.TB, f formats.Format, m formats.Encoded) formats.Encoded {
	t.Helper()
	var file bytes.Buffer
	if err := safetensors.WriteMatrix(&file, m); err != nil {
		t.Fatal(err)
	}
	c, err := safetensors.ReadMatrix(&file, safetensors.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Allocated returns how many bytes are allocated while f runs.
func Allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// Read reports whether any bytes were read as m. It fails where m is not valid, or the error has several lines.
func Read(t *testing.T, m interface{ Validate() error }, err error) bool {
	t.Helper()
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Fatalf("error of several lines: %q", err)
		}
		return false
	}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	return true
}
