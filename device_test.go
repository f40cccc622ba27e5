// Finding and opening devices: what is imported, what is there, and what "auto" takes.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all" // the tests run on every device
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// broken is a GPU's driver that lists a device and cannot open it. It is of a backend that the project does not
// have, which "auto" puts before the CPU.
type broken struct{}

func init() { backend.Register(broken{}) }

func (broken) Name() string { return "broken" }

func (broken) Devices(context.Context) ([]backend.Info, error) {
	if !brokenListed {
		return nil, fmt.Errorf("not now: %w", backend.ErrUnavailable)
	}
	return []backend.Info{{Backend: "broken", Name: "abacus", Kind: "discrete"}}, nil
}

func (broken) Open(context.Context, backend.Info) (backend.Device, error) {
	return nil, fmt.Errorf("a bead is missing: %w", backend.ErrUnavailable)
}

// brokenListed is set by the tests that want the driver to list its device.
var brokenListed bool

func listBroken(t *testing.T) {
	brokenListed = true
	t.Cleanup(func() { brokenListed = false })
}

// Open("auto") opens something on every machine, and says of each better backend why it is not that one.
func TestSkipped(t *testing.T) {
	listBroken(t)
	dev, err := spmm.Open(ctx, "auto")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	reasons := map[string]string{}
	for _, s := range dev.Skipped() {
		if !strings.HasPrefix(s.Err.Error(), s.Backend+":") || !errors.Is(s.Err, spmm.ErrUnavailable) {
			t.Errorf("%s was skipped because of %q", s.Backend, s.Err)
		}
		reasons[s.Backend] += s.Err.Error()
	}
	order := []string{"cuda", "vulkan", "webgpu", "broken", "cpu"}
	for i, name := range order {
		taken := name == dev.Info().Backend
		if (reasons[name] == "") != taken {
			t.Errorf("took %v; of %s it says %q", dev.Info(), name, reasons[name])
		}
		if taken {
			order = order[:i+1]
			break
		}
	}
	if len(reasons) != len(order)-1 {
		t.Errorf("took %v, and says %v", dev.Info(), reasons)
	}
	if r := reasons["broken"]; r != "" && r != "broken: a bead is missing: not available" {
		t.Errorf("%q", r)
	}
}

func TestOpenByName(t *testing.T) {
	listBroken(t)
	dev, err := spmm.Open(ctx, "cpu:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if s := dev.Skipped(); len(s) != 0 {
		t.Errorf("the cpu was named, and %v skipped", s)
	}
	for name, want := range map[string]string{
		"abacus":    `unknown backend "abacus" (this program has broken, cpu, cuda, vulkan, webgpu)`,
		"auto:1":    `device "auto:1": auto takes no index`,
		"":          `unknown backend ""`,
		"cpu:first": `device "cpu:first": want cpu:INDEX`,
		"cpu:-1":    `device "cpu:-1": want cpu:INDEX`,
		"cpu:9":     "cpu has no device 9, only cpu:0: not available",
		"broken":    "broken: a bead is missing: not available",
	} {
		if _, err := spmm.Open(ctx, name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Every backend is listed, with a device or with the reason why it has none.
func TestDevicesOrReasons(t *testing.T) {
	present, absent := spmm.Devices(ctx)
	listed := map[string]bool{}
	for _, i := range present {
		listed[i.Backend] = true
	}
	for i, a := range absent {
		if listed[a.Backend] {
			t.Errorf("%s is present, and %v", a.Backend, a.Err)
		}
		listed[a.Backend] = true
		if !strings.HasPrefix(a.Err.Error(), a.Backend+":") || !errors.Is(a.Err, spmm.ErrUnavailable) {
			t.Errorf("%s: %v", a.Backend, a.Err)
		}
		if i > 0 && absent[i-1].Backend >= a.Backend {
			t.Errorf("%s after %s", a.Backend, absent[i-1].Backend)
		}
	}
	for _, name := range []string{"broken", "cpu", "cuda", "vulkan", "webgpu"} {
		if !listed[name] {
			t.Errorf("%s is not listed", name)
		}
	}
}

// More entries and more columns are predicted to take longer; what the options do not allow is refused.
func TestPredict(t *testing.T) {
	dev := openCPU(t)
	last := time.Duration(0)
	for _, size := range []int{1 << 9, 1 << 11, 1 << 13} {
		a, err := gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,nnz-per-row=9", size, size))
		if err != nil {
			t.Fatal(err)
		}
		few, err := spmm.Predict(ctx, dev, a, spmm.Options{Format: "csr", Cols: 8})
		if err != nil {
			t.Fatal(err)
		}
		many, err := spmm.Predict(ctx, dev, a, spmm.Options{Format: "csr", Cols: 256})
		if err != nil || few <= last || many <= few {
			t.Errorf("%d rows: %v by 8 columns, %v by 256, %v; and %v with fewer rows", size, few, many, err, last)
		}
		last = few
	}
	if _, err := spmm.Predict(ctx, dev, &formats.CSR[float32]{RowPtr: []int64{0}},
		spmm.Options{Format: "none"}); err == nil {
		t.Error("a format that there is not")
	}
}
