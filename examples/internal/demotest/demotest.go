// Package demotest tests the examples' programs.
package demotest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
)

// Program is a program that demo.Main runs.
type Program func(ctx context.Context, args []string, out io.Writer) error

// EachDevice calls f with the name of each device that is present.
func EachDevice(t *testing.T, f func(t *testing.T, device string)) {
	infos, _ := spmm.Devices(t.Context())
	for _, info := range infos {
		device := fmt.Sprintf("%s:%d", info.Backend, info.Index)
		t.Run(device, func(t *testing.T) { f(t, device) })
	}
}

// Runs runs a program on each device that is present, and looks for some texts in its output.
func Runs(t *testing.T, run Program, args string, want ...string) {
	EachDevice(t, func(t *testing.T, device string) {
		text, err := Output(run, device, strings.Fields(args)...)
		t.Log(text)
		if err != nil {
			t.Errorf("error %v", err)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in the output", w)
			}
		}
	})
}

// Output returns what a program prints on a device.
func Output(run Program, device string, args ...string) (string, error) {
	var out strings.Builder
	err := run(context.Background(), append([]string{"-device", device}, args...), &out)
	return out.String(), err
}

// Refusal is a command line that a program refuses, and what its error says.
type Refusal = struct {
	Args []string
	Want string
}

// Refuses checks what a program refuses.
func Refuses(t *testing.T, run Program, refusals []Refusal) {
	for _, r := range refusals {
		_, err := Output(run, "cpu", r.Args...)
		if err == nil || !strings.Contains(err.Error(), r.Want) {
			t.Errorf("%v: %v, want %q", r.Args, err, r.Want)
		}
	}
}

// File writes a matrix of some entries "row column value".
func File(t *testing.T, rows, cols int, entries ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.mtx")
	text := fmt.Sprintf("%%%%MatrixMarket matrix coordinate real general\n%d %d %d\n", rows, cols, len(entries))
	text += strings.Join(entries, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
