// Checkpoints that are not what was written.

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/npy"
)

// Whatever is in the folder: the state of a step of this job, or an error of one line. With sealed the description has the
// digest of the state, so that this is looked at.
func FuzzCheckpoint(f *testing.F) {
	k := &checkpoints{job: checkpointJob{Graph: "1", X0: "2", Vertices: 3, Cols: 2, Mode: "fast", Format: "auto", Normalise: "row"}}
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
	f.Fuzz(func(t *testing.T, text, state []byte, sealed bool) {
		if sealed {
			sum := sha256.Sum256(state)
			text = bytes.ReplaceAll(text, []byte(c.SHA256), []byte(hex.EncodeToString(sum[:])))
		}
		c, err := k.parse(text, 5)
		var x *formats.Dense[float32]
		if err == nil {
			x, err = k.read(c, bytes.NewReader(state))
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "\n"):
			t.Fatalf("an error of several lines: %q", err)
		case err == nil && (c.Step < 1 || c.Step > 5 || x.Rows != 3 || x.Cols != 2 || x.Validate() != nil):
			t.Fatalf("step %d of %+v", c.Step, x)
		}
	})
}
