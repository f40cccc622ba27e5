// Finding and opening devices.

package spmm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/backend"
	_ "github.com/spmmrun/spmm/backend/all" // every backend of this build
	"github.com/spmmrun/spmm/internal/plan"
)

// Errors of devices, for errors.Is.
var (
	ErrUnavailable = backend.ErrUnavailable // the driver or the device is not there
	ErrUnsupported = backend.ErrUnsupported // the device cannot run this
	ErrOutOfMemory = backend.ErrOutOfMemory // the device has not enough memory; it stays usable
	ErrDeviceLost  = backend.ErrDeviceLost  // the device stopped answering; close it
)

// Info identifies a device.
type Info = backend.Info

// Absent is a backend without a device, and the reason, which starts with its name.
type Absent struct {
	Backend string
	Err     error
}

// Devices lists the devices of every backend in this build, sorted by backend, and the backends that
// have none.
func Devices(ctx context.Context) ([]Info, []Absent) {
	var present []Info
	var absent []Absent
	for _, d := range backend.Drivers() {
		infos, err := d.Devices(ctx)
		if err != nil {
			absent = append(absent, Absent{d.Name(), named(d.Name(), err)})
		}
		present = append(present, infos...)
	}
	return present, absent
}

// named puts the backend's name before an error that does not start with it.
func named(backend string, err error) error {
	if strings.HasPrefix(err.Error(), backend+":") {
		return err
	}
	return fmt.Errorf("%s: %w", backend, err)
}

// Device is an opened device. Its methods, and those of plans and tensors on it, may be called from
// any goroutine.
type Device struct{ d *plan.Device }

// Open opens a device by name: "auto", a backend ("vulkan"), or a backend and the device's index
// ("vulkan:1"). The caller closes it.
func Open(ctx context.Context, name string) (*Device, error) {
	d, err := OpenBackend(ctx, name)
	if err != nil {
		return nil, err
	}
	return NewDevice(d), nil
}

// OpenBackend is Open for programs that use package backend itself.
func OpenBackend(ctx context.Context, name string) (backend.Device, error) {
	infos, err := candidates(ctx, name)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, info := range infos {
		drv, err := backend.Find(info.Backend)
		if err != nil {
			return nil, err
		}
		d, err := drv.Open(ctx, info)
		if err == nil {
			return d, nil
		}
		errs = append(errs, named(info.Backend, err))
	}
	return nil, errors.Join(errs...)
}

// NewDevice makes a Device of one that was opened through package backend, which belongs to it from
// then on.
func NewDevice(d backend.Device) *Device { return &Device{plan.NewDevice(d)} }

// candidates returns the devices that a name may mean, the best first. Only "auto" means several.
func candidates(ctx context.Context, name string) ([]Info, error) {
	driver, index, indexed := strings.Cut(name, ":")
	if driver == "auto" && !indexed {
		return ranked(ctx)
	}
	d, err := backend.Find(driver)
	if err != nil {
		return nil, err
	}
	n := -1
	if indexed {
		if n, err = strconv.Atoi(index); err != nil || n < 0 {
			return nil, fmt.Errorf("device %q: want %s:INDEX with an index from 0", name, driver)
		}
	}
	infos, err := d.Devices(ctx)
	if err != nil {
		return nil, named(driver, err)
	}
	if !indexed {
		slices.SortStableFunc(infos, func(a, b Info) int { return kindRank(a) - kindRank(b) })
		return infos[:min(1, len(infos))], nil
	}
	for _, i := range infos {
		if i.Index == n {
			return []Info{i}, nil
		}
	}
	return nil, fmt.Errorf("%s has no device %d, only %s: %w", driver, n, strings.Join(names(infos), ", "), ErrUnavailable)
}

func names(infos []Info) []string {
	var s []string
	for _, i := range infos {
		s = append(s, fmt.Sprintf("%s:%d", i.Backend, i.Index))
	}
	return s
}

// ranked returns all devices, the fastest first: GPUs by backend, then the cpu backend, then drivers
// that only simulate a GPU.
func ranked(ctx context.Context) ([]Info, error) {
	infos, absent := Devices(ctx)
	if len(infos) == 0 {
		errs := []error{fmt.Errorf("no device: %w", ErrUnavailable)}
		for _, a := range absent {
			errs = append(errs, a.Err)
		}
		return nil, errors.Join(errs...)
	}
	order := []string{"cuda", "vulkan", "webgpu", "cpu"}
	rank := func(i Info) int {
		b := slices.Index(order, i.Backend)
		if b < 0 {
			b = len(order) - 1 // a backend of another package: before the CPU's
		}
		if i.Kind == "cpu" && i.Backend != "cpu" {
			b += len(order)
		}
		return 16*b + kindRank(i)
	}
	slices.SortStableFunc(infos, func(a, b Info) int { return rank(a) - rank(b) })
	return infos, nil
}

// kindRank orders the devices of one backend.
func kindRank(i Info) int {
	return slices.Index([]string{"discrete", "integrated", "virtual", "", "cpu"}, i.Kind) + 1
}

// Info identifies the device.
func (d *Device) Info() Info { return d.d.Info() }

// Caps tells what the device can do.
func (d *Device) Caps() backend.Caps { return d.d.Caps() }

// Remeasure measures again what Plan.Attainable holds multiplications against, and keeps the higher
// rates. It is of use where a multiplication beat its bound: the device was busy when it was measured.
func (d *Device) Remeasure(ctx context.Context) error { return d.d.Remeasure(ctx) }

// Close frees the device with every plan and tensor on it. It may be called more than once.
func (d *Device) Close() error { return d.d.Close() }
