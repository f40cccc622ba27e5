// Quantised matrices on the command line.

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuantisedFiles: a file that convert has quantised is multiplied with, inspected, converted back, and refused by
// name where 8 bits make no sense.
func TestQuantisedFiles(t *testing.T) {
	t.Setenv("SPMM_CACHE", t.TempDir())
	const a = "gen:uniform,rows=90,cols=300,density=0.5"
	mtx := filepath.Join(t.TempDir(), "q.mtx")
	for _, kind := range []string{"int8", "e4m3"} {
		q := filepath.Join(t.TempDir(), kind+".safetensors")
		for _, c := range []struct {
			args string
			want string // in what is printed, or in the error if it begins with "!"
		}{
			{"convert --quantise " + kind + " " + a + " " + q, "quantised, 90×300"},
			{"convert --quantise " + kind + " --to csr " + a + " " + q, "!--quantise: a quantised matrix"},
			{"convert --quantise " + kind + " " + a + " " + mtx, "!only .safetensors"},
			{"convert " + q + " " + mtx, "csr, 90×300"},
			{"inspect --backend cpu " + q, "lanestream  cpu 64×128"},
			{"--backend cpu -n 3 --repeats 1 " + q, "values"},
			{"--backend cpu -n 3 --repeats 1 --precision bf16 --report json " + q, `"quantised"`},
			{"--backend cpu -n 3 --repeats 1 --quantise " + kind + " " + a, "before it was quantised"},
			{"--backend cpu --transpose -n 3 --repeats 1 --quantise " + kind + " " + a, "before it was quantised"},
			{"--backend cpu --transpose " + q, "!--transpose: "},
			{"--backend cpu --mode reproducible " + q, "!--mode reproducible: "},
			{"--backend cpu --mode reproducible --quantise " + kind + " " + a, "!--quantise is for --mode fast"},
			{"--backend cpu --precision tf32 " + q, "!--precision tf32: "},
			{"--backend cpu --format csr " + q, "!no kernel for format csr"},
		} {
			var out bytes.Buffer
			err := execute(context.Background(), strings.Fields(c.args), &out, &bytes.Buffer{}, new(temporaries))
			text := out.String()
			if want, refused := strings.CutPrefix(c.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %v, want an error with %q", c.args, err, want)
				}
				continue
			}
			if err != nil || !strings.Contains(text, c.want) || strings.Contains(text, "WRONG") {
				t.Errorf("%s: %v\n%s", c.args, err, text)
			}
		}
	}
}
