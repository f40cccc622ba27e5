// Numbers of kernels' own cost functions: what a tile leaves out is its kernel's, and mistakes are not passed over.

package model_test

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/model"
)

type prefill struct {
	Step  float64 `json:"step_ns"`
	Short float64 `json:"short_step_ns"`
	Start float64 `json:"start_ns"`
}

func TestKernel(t *testing.T) {
	kernel := model.Kernel[prefill](backend.CodePTX, "lanestream/prefill")
	tile := model.Kernel[prefill](backend.CodePTX, "lanestream/prefill/256x128")
	if kernel.Start <= 0 || kernel.Step != 0 || tile.Start != kernel.Start || tile.Step <= 0 || tile.Short <= 0 {
		t.Errorf("the kernel has %+v, its tile %+v", kernel, tile)
	}
	for name, f := range map[string]func(){
		"no numbers of kernel": func() { model.Kernel[prefill](backend.CodePTX, "lanestream/nothing") },
		"no numbers of":        func() { model.Kernel[prefill](backend.CodeWGSL, "lanestream/prefill") },
		"unknown field":        func() { model.Kernel[struct{}](backend.CodePTX, "lanestream/prefill") },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, name) {
					t.Errorf("want a panic with %q, got %q", name, text)
				}
			}()
			f()
		}()
	}
}

func TestKernelNumbers(t *testing.T) {
	const head = `{"version": 2, "code": "ptx", "costs": [], "kernels": {"dense/hopper": `
	if _, err := model.Parse([]byte(head + `{"step_ns": 7}}}`)); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{`{"step_ns": -7}}}`: "step_ns -7", `{"step_ns": "7"}}}`: "dense/hopper",
		`[7]}}`: "dense/hopper", `{"step_ns": 1e300}}}`: "step_ns"} {
		if _, err := model.Parse([]byte(head + text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error with %q", text, err, want)
		}
	}
}
