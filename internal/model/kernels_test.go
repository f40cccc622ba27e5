// Numbers of kernels' own cost functions: what a tile leaves out is its kernel's, and mistakes are not passed over.

package model_test

import (
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/model"
)

type tiles struct {
	Step        float64 `json:"step_ns"`
	Area        float64 `json:"area_ns"`
	Start       float64 `json:"start_ns"`
	Share       float64 `json:"share_ns"`
	ShareColumn float64 `json:"share_column_ns"`
	Column      float64 `json:"column_ns"`
}

func TestKernel(t *testing.T) {
	kernel := model.Kernel[tiles](backend.CodePTX, "dense/quantised")
	tile := model.Kernel[tiles](backend.CodePTX, "dense/quantised/128x128/cluster2")
	other := model.Kernel[tiles](backend.CodePTX, "dense/quantised/128x16")
	if kernel.Step <= 0 || kernel.Share <= 0 || kernel.Column <= 0 || other != kernel {
		t.Errorf("the kernel has %+v, a tile without numbers %+v", kernel, other)
	}
	if tile.Step == kernel.Step || tile.Share != kernel.Share || tile.Column != kernel.Column {
		t.Errorf("the kernel has %+v, its tile %+v", kernel, tile)
	}
	for name, f := range map[string]func(){
		"no numbers of kernel": func() { model.Kernel[tiles](backend.CodePTX, "dense/nothing") },
		"no numbers of":        func() { model.Kernel[tiles](backend.CodeWGSL, "dense/quantised") },
		"unknown field":        func() { model.Kernel[tiles](backend.CodePTX, "lanestream/prefill") },
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
	const head = `{"version": 3, "code": "ptx", "costs": [], "kernels": {"dense/hopper": `
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
