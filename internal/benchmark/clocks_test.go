package benchmark

import (
	"context"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
)

// namedDevice is a device that nothing is computed on.
type namedDevice struct {
	backend.Device
	info backend.Info
	open *int // how many are
}

func (d namedDevice) Info() backend.Info { return d.info }
func (d namedDevice) Caps() backend.Caps { return backend.Caps{} }

func (d namedDevice) Close() error {
	*d.open--
	return nil
}

// cudaDriver stands for the CUDA backend, with two devices while `there` is set.
type cudaDriver struct {
	there bool
	open  int
	last  int // the device that was opened last
}

func (c *cudaDriver) Name() string { return "cuda" }

func (c *cudaDriver) Devices(context.Context) ([]backend.Info, error) {
	if !c.there {
		return nil, backend.ErrUnavailable
	}
	return []backend.Info{{Backend: "cuda"}, {Backend: "cuda", Index: 1}}, nil
}

func (c *cudaDriver) Open(_ context.Context, i backend.Info) (backend.Device, error) {
	c.open++
	c.last = i.Index
	return namedDevice{info: i, open: &c.open}, nil
}

var cudaStub = &cudaDriver{}

func init() { backend.Register(cudaStub) }

// TestHoldClocks checks for which devices a CUDA device is opened, that it is the same GPU, and that it is closed.
func TestHoldClocks(t *testing.T) {
	defer func() { cudaStub.there = false }()
	at := func(name, device string, index int) *place {
		d := spmm.NewDevice(namedDevice{info: backend.Info{Backend: name, Name: device, Index: index}, open: new(int)})
		return &place{name: name, dev: d, devices: []*spmm.Device{d}}
	}
	for _, x := range []struct {
		name   string
		there  bool
		places []*place
		want   int // the index of the CUDA device; -1: none
	}{
		{"Vulkan on NVIDIA", true, []*place{at("vulkan", "NVIDIA H200", 0)}, 0},
		{"its second GPU", true, []*place{at("cpu", "a processor", 0), at("webgpu", "NVIDIA H200", 1)}, 1},
		{"CUDA is measured", true, []*place{at("vulkan", "NVIDIA H200", 0), at("cuda", "NVIDIA H200", 0)}, -1},
		{"CUDA is measured on another GPU", true,
			[]*place{at("cuda", "NVIDIA H200", 1), at("vulkan", "NVIDIA H200", 0)}, 0},
		{"another vendor", true, []*place{at("vulkan", "a GPU", 0)}, -1},
		{"no CUDA", false, []*place{at("vulkan", "NVIDIA H200", 0)}, -1},
	} {
		cudaStub.there, cudaStub.last = x.there, -1
		if x.places[0].clocks = holdClocks(t.Context(), x.places); cudaStub.last != x.want {
			t.Errorf("%s: CUDA device %d is opened, want %d", x.name, cudaStub.last, x.want)
		}
		if want := min(1, x.want+1); cudaStub.open != want {
			t.Errorf("%s: %d CUDA devices are open, want %d", x.name, cudaStub.open, want)
		}
		if closeAll(x.places); cudaStub.open != 0 {
			t.Errorf("%s: %d CUDA devices stay open", x.name, cudaStub.open)
		}
	}
}
