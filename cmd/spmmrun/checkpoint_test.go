// Checkpoints that are not what was written.

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

// Whatever is in the folder: the state of a step of this job, or an error of one line. With sealed the description has the
// digest of the state, so that this is looked at.
func FuzzCheckpoint(f *testing.F) {
	k := &checkpoints{dir: f.TempDir(), job: checkpointJob{Graph: "1", X0: "2", Vertices: 3, Cols: 2, Mode: "fast", Format: "auto", Normalise: "row"}}
	c := checkpoint{Job: k.job, Step: 2, File: "step-2.npy", SHA256: strings.Repeat("0", 64)}
	text, err := json.Marshal(c)
	if err != nil {
		f.Fatal(err)
	}
	var state bytes.Buffer
	if err := npy.Write(&state, formats.NewDense[float32](3, 2)); err != nil {
		f.Fatal(err)
	}
	f.Add(text, state.Bytes(), false)
	f.Add(text, state.Bytes(), true)
	there := map[string][]byte{}
	f.Fuzz(func(t *testing.T, text, state []byte, sealed bool) {
		if sealed {
			sum := sha256.Sum256(state)
			text = bytes.ReplaceAll(text, []byte(c.SHA256), []byte(hex.EncodeToString(sum[:])))
		}
		for name, content := range map[string][]byte{checkpointFile: text, c.File: state} {
			if old, is := there[name]; is && bytes.Equal(old, content) {
				continue
			}
			if err := os.WriteFile(filepath.Join(k.dir, name), content, 0o666); err != nil {
				t.Fatal(err)
			}
			there[name] = bytes.Clone(content)
		}
		x, step, err := k.open(5)
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("an error of several lines: %q", err)
		case err == nil && (step < 1 || step > 5 || x.Rows != 3 || x.Cols != 2 || x.Validate() != nil):
			t.Fatalf("step %d of %+v", step, x)
		}
	})
}
