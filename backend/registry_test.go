// The registry of a program that imports no backend, then one of its own.

package backend_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

type named string

func (n named) Name() string { return string(n) }

func (named) Devices(context.Context) ([]backend.Info, error) { return nil, backend.ErrUnavailable }

func (named) Open(context.Context, backend.Info) (backend.Device, error) {
	return nil, backend.ErrUnavailable
}

func TestRegistry(t *testing.T) {
	if d := backend.Drivers(); len(d) != 0 {
		t.Fatalf("imported nothing, and it has %v", d)
	}
	if n := backend.NotImported(); !slices.Equal(n, []string{"cpu", "cuda", "vulkan", "webgpu"}) {
		t.Errorf("not imported: %q", n)
	}
	for name, pkg := range map[string]string{"cuda": "backend/cuda", "vulkan": "backend/vulkan",
		"webgpu": "portable/webgpu"} {
		_, err := backend.Find(name)
		if !errors.Is(err, backend.ErrUnavailable) || !strings.HasPrefix(err.Error(), name+": ") ||
			!strings.HasSuffix(err.Error(), `add: import _ "github.com/spmmrun/spmm/`+pkg+`"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	backend.Register(named("webgpu"))
	backend.Register(named("abacus"))
	if d := backend.Drivers(); !slices.Equal(d, []backend.Driver{named("abacus"), named("webgpu")}) {
		t.Errorf("registered: %v", d)
	}
	if n := backend.NotImported(); !slices.Equal(n, []string{"cpu", "cuda", "vulkan"}) {
		t.Errorf("not imported: %q", n)
	}
	if d, err := backend.Find("webgpu"); d != named("webgpu") {
		t.Errorf("%v, %v", d, err)
	}
	if _, err := backend.Find("loom"); errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), `unknown backend "loom" (this program has abacus, webgpu)`) {
		t.Errorf("%v", err)
	}
	defer func() {
		if r := recover(); r == nil {
			t.Error("a second driver of the same name was taken")
		}
	}()
	backend.Register(named("abacus"))
}
