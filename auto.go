// Which device "auto" takes.

package spmm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// openAuto opens the fastest device that can be opened and is able to compute in a precision, and tells which backends
// it would have preferred.
func openAuto(ctx context.Context, precision dtype.Type) (backend.Device, []Absent, error) {
	infos, skipped := ranked(ctx)
	for _, info := range infos {
		d, err := openInfo(ctx, info)
		if err == nil && precision == dtype.F64 && !d.Caps().F64 {
			d.Close()
			err = fmt.Errorf("%s: %s has no kernels for f64: %w", info.Backend, info.Name, ErrUnsupported)
		}
		if err == nil {
			return d, preferred(skipped, info), nil
		}
		skipped = append(skipped, Absent{info.Backend, err})
	}
	errs := []error{fmt.Errorf("no device: %w", ErrUnavailable)}
	for _, s := range skipped {
		errs = append(errs, s.Err)
	}
	return nil, nil, errors.Join(errs...)
}

// ranked returns all devices, the fastest first: GPUs by backend, then the cpu backend, then drivers
// that only simulate a GPU; and the backends that have no device, or only such a one.
func ranked(ctx context.Context) ([]Info, []Absent) {
	infos, absent := Devices(ctx)
	slices.SortStableFunc(infos, func(a, b Info) int { return rank(a) - rank(b) })
	for n, i := range infos {
		if simulated(i) && !slices.ContainsFunc(infos[:n], func(o Info) bool { return o.Backend == i.Backend }) {
			absent = append(absent, Absent{i.Backend, fmt.Errorf("%s: no GPU, only %s, which simulates one on the CPU: %w",
				i.Backend, i.Name, ErrUnavailable)})
		}
	}
	return infos, absent
}

// rank is a device's place in the order of "auto".
func rank(i Info) int {
	r := backendRank(i.Backend)
	if simulated(i) {
		r = backendRank("cpu") + 1 + r
	}
	return 16*r + slices.Index([]string{"discrete", "integrated", "virtual", "", "cpu"}, i.Kind) + 1
}

// backendRank is a backend's place; one of another package comes before the CPU.
func backendRank(name string) int {
	switch name {
	case "cuda":
		return 0
	case "vulkan":
		return 1
	case "webgpu":
		return 2
	case "cpu":
		return 4
	}
	return 3
}

// simulated tells whether the device is a driver that does a GPU's work on the CPU.
func simulated(i Info) bool { return i.Kind == "cpu" && i.Backend != "cpu" }

// preferred returns the skipped backends that come before the opened device, the fastest first.
func preferred(skipped []Absent, opened Info) []Absent {
	var out []Absent
	for _, s := range skipped {
		if backendRank(s.Backend) <= backendRank(opened.Backend) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Absent) int { return backendRank(a.Backend) - backendRank(b.Backend) })
	return out
}
