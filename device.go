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
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	_ "github.com/spmmrun/spmm/portable/cpu" // always there
)

// Errors of devices, for errors.Is.
var (
	ErrUnavailable = backend.ErrUnavailable // the driver or the device is not there
	ErrUnsupported = backend.ErrUnsupported // the device lacks what this needs
	ErrCompile     = backend.ErrCompile     // the driver refuses a kernel that the device should run
	ErrOutOfMemory = backend.ErrOutOfMemory // the device has not enough memory; it stays usable
	ErrDeviceLost  = backend.ErrDeviceLost  // the device stopped answering; close it
	ErrClosed      = backend.ErrClosed      // a device, a plan, a tensor or a sequence was closed before
)

// Info identifies a device.
type Info = backend.Info

// Absent is a backend without a usable device, and the reason, which starts with the backend's name.
type Absent struct {
	Backend string
	Err     error
}

// Devices lists the devices of every backend that the program imports, sorted by backend, and the backends that
// have none: those that find no driver or no device, those that this build cannot hold, and those that the
// program does not import. The errors say what to do about each.
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
	for _, name := range backend.NotImported() {
		_, err := backend.Find(name)
		absent = append(absent, Absent{name, err})
	}
	slices.SortStableFunc(absent, func(a, b Absent) int { return strings.Compare(a.Backend, b.Backend) })
	return present, absent
}

// named puts the backend's name before an error that does not start with it.
func named(backend string, err error) error {
	if strings.HasPrefix(err.Error(), backend+":") {
		return err
	}
	return fmt.Errorf("%s: %w", backend, err)
}

// Device is an opened device, or several of one process that multiply together, each a part of every product. Its methods,
// and those of plans and tensors on it, may be called from any goroutine.
//
// What a device by itself alone can do (TensorOver, NewPinned, UseStream, Encode, Compare, Predict, Rates) is ErrUnsupported
// on several: call it with one of Devices.
type Device struct {
	d       *device.Device // nil if there are several
	members []*Device      // of several
	skipped []Absent
}

// Open opens a device by name: "auto", a backend ("vulkan"), or a backend and the device's index
// ("vulkan:1"). The caller closes it. "auto" takes the fastest device that can be opened, at worst the CPU;
// Device.Skipped says what it would have preferred. The error of a backend that the program does not import
// is ErrUnavailable and names the import that adds it.
//
// A list opens several devices, as Join does: "cuda:all" is every device of a backend, "cuda:0,1" two of them, and
// "cuda:0,vulkan:1" devices of two backends. A device that is named twice is opened twice, and "cpu,cpu" is two devices that
// share the processor, for tests. If one of them cannot be opened, none is.
func Open(ctx context.Context, name string) (*Device, error) {
	return OpenFor(ctx, name, dtype.Invalid)
}

// OpenFor is Open for multiplications in a precision: "auto" takes the fastest device that has kernels for it. All have some
// for every precision but dtype.F64, which CUDA, the CPU, and devices of Vulkan with the feature shaderFloat64 have, or take F32
// for TF32.
func OpenFor(ctx context.Context, name string, precision dtype.Type) (*Device, error) {
	if strings.Contains(name, ",") || strings.HasSuffix(name, ":all") {
		return openList(ctx, name, precision)
	}
	d, skipped, err := open(ctx, name, precision)
	if err != nil {
		return nil, err
	}
	dev := NewDevice(d)
	dev.skipped = skipped
	return dev, nil
}

// OpenBackend is Open of one device for programs that use package backend itself.
func OpenBackend(ctx context.Context, name string) (backend.Device, error) {
	d, _, err := open(ctx, name, dtype.Invalid)
	return d, err
}

// open opens the device that a name means, and tells what "auto" would have preferred to it.
func open(ctx context.Context, name string, precision dtype.Type) (backend.Device, []Absent, error) {
	if name == "auto" {
		return openAuto(ctx, precision)
	}
	info, err := find(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	d, err := openInfo(ctx, info)
	return d, nil, err
}

// openInfo opens a device that its driver has listed.
func openInfo(ctx context.Context, info Info) (backend.Device, error) {
	drv, err := backend.Find(info.Backend)
	if err != nil {
		return nil, err
	}
	d, err := drv.Open(ctx, info)
	if err != nil {
		return nil, named(info.Backend, err)
	}
	return d, nil
}

var errNoDevice = errors.New("the device is missing: Open returns one")

// alone returns the device for a call that several cannot do.
func (d *Device) alone(call string) (*device.Device, error) {
	switch {
	case d == nil:
		return nil, errNoDevice
	case d.d == nil:
		return nil, fmt.Errorf("%s is for a device by itself, not for %d together: call it with one of Device.Devices: %w",
			call, len(d.members), ErrUnsupported)
	}
	return d.d, nil
}

// NewDevice makes a Device of one that was opened through package backend, which belongs to it from
// then on.
func NewDevice(d backend.Device) *Device { return &Device{d: device.New(d)} }

// find returns the device of that name: of a backend with an index, else the backend's best.
func find(ctx context.Context, name string) (Info, error) {
	driver, index, indexed := strings.Cut(name, ":")
	if driver == "auto" {
		return Info{}, fmt.Errorf("device %q: auto takes no index", name)
	}
	d, err := backend.Find(driver)
	if err != nil {
		return Info{}, err
	}
	n, err := strconv.Atoi(index)
	if indexed && (err != nil || n < 0) {
		return Info{}, fmt.Errorf("device %q: want %s:INDEX with an index from 0", name, driver)
	}
	infos, err := d.Devices(ctx)
	if err != nil {
		return Info{}, named(driver, err)
	}
	if !indexed && len(infos) > 0 {
		return slices.MinFunc(infos, func(a, b Info) int { return rank(a) - rank(b) }), nil
	}
	for _, i := range infos {
		if i.Index == n {
			return i, nil
		}
	}
	return Info{}, fmt.Errorf("%s has no device %d, only %s: %w", driver, n, strings.Join(names(infos), ", "), ErrUnavailable)
}

func names(infos []Info) []string {
	var s []string
	for _, i := range infos {
		s = append(s, fmt.Sprintf("%s:%d", i.Backend, i.Index))
	}
	return s
}

// Info identifies the device; of several, the first.
func (d *Device) Info() Info { return d.first().Info() }

// Skipped lists what Open("auto") would have preferred to this device, the fastest first, and why it was not to be
// had: the program does not import the backend, no driver or device was found, or the device could not be opened.
// It is empty for a device that was opened by its name.
func (d *Device) Skipped() []Absent { return slices.Clone(d.skipped) }

// Caps tells what the device can do; of several, what the first can.
func (d *Device) Caps() backend.Caps { return d.first().Caps() }

// Close frees the device with every plan and tensor on it; of several, each. It may be called more than once.
func (d *Device) Close() error {
	var errs []error
	for _, x := range d.all() {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}
