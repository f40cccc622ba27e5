// Every variant of every kernel loads on every device that meets its needs.

package shaders_test

import (
	"os"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// Every variant that a device says it can run is accepted by its compiler.
func TestVariantsLoad(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		var loaded, matrix int
		for _, k := range shaders.All() {
			for _, v := range shadertest.Forms(dev, k) {
				b, err := k.Binary(v)
				if err != nil {
					t.Error(err)
					continue
				}
				kernel, err := dev.Load(b)
				if err != nil {
					t.Errorf("%s/%s: %v", k.Name, v.Name, err)
					continue
				}
				if err := kernel.Close(); err != nil {
					t.Errorf("%s/%s: %v", k.Name, v.Name, err)
				}
				loaded++
				if v.Matrix {
					matrix++
				}
			}
		}
		t.Logf("%v: %d variants, %d of them with cooperative matrices", dev.Info(), loaded, matrix)
		if loaded < len(shaders.All()) {
			t.Error("too few variants")
		}
		if mode := os.Getenv("SPMM_SOFTVK"); dev.Info().Backend == "vulkan" &&
			(matrix > 0) != (mode == "matrices" || mode == "amd") && mode != "" {
			t.Errorf("with softvk's driver %q there should be others", mode)
		}
	})
}
