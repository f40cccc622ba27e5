// Where products are computed: a device, or several that share each product.

package benchmark

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
)

// place is a device, or several together, under the name that results have it by.
type place struct {
	asked   string // the name that was asked for
	name    string
	dev     *spmm.Device
	devices []*spmm.Device // each
	several bool
	clocks  *spmm.Device // see holdClocks; nil: nothing is held
}

// IsGroup tells whether a name of Sweep.Backends is that of a group: cuda:all, or devices with + between them.
func IsGroup(name string) bool { return strings.Contains(name, "+") || strings.HasSuffix(name, ":all") }

// openPlaces opens places by their names, such that compute in f64 if that is needed; those returned are open even if
// there is an error.
func openPlaces(ctx context.Context, names []string, f64 bool) ([]*place, error) {
	var all []*place
	for _, name := range names {
		p, err := openPlace(ctx, name, f64)
		if err != nil {
			return all, err
		}
		all = append(all, p)
		if i := slices.IndexFunc(all, p.same); i < len(all)-1 {
			return all, fmt.Errorf("device %s is measured twice: as %s too", all[i].name, name)
		}
	}
	if len(all) > 0 {
		all[0].clocks = holdClocks(ctx, all)
	}
	return all, nil
}

// same tells whether two places are the same device, under whatever names, or groups of one name.
func (p *place) same(x *place) bool {
	if p.several || x.several {
		return p.name == x.name
	}
	mine, other := p.devices[0].Info(), x.devices[0].Info()
	return mine.Backend == other.Backend && mine.Index == other.Index
}

// openPlace opens a device or a group. Name auto becomes that of the device it takes, one that computes in f64 if
// that is needed.
func openPlace(ctx context.Context, name string, f64 bool) (*place, error) {
	if IsGroup(name) {
		d, err := spmm.Open(ctx, strings.ReplaceAll(name, "+", ","))
		if err != nil {
			return nil, err
		}
		return &place{asked: name, name: name, dev: d, devices: d.Devices(), several: true}, nil
	}
	needed := dtype.Invalid
	if f64 && name == "auto" {
		needed = dtype.F64
	}
	d, err := spmm.OpenFor(ctx, name, needed)
	if err != nil {
		return nil, err
	}
	asked := name
	if i := d.Info(); name == "auto" {
		name = i.Backend
		if i.Index > 0 {
			name = fmt.Sprintf("%s:%d", i.Backend, i.Index)
		}
	}
	return &place{asked: asked, name: name, dev: d, devices: d.Devices()}, nil
}

func (p *place) infos() []spmm.Info {
	var all []spmm.Info
	for _, d := range p.devices {
		all = append(all, d.Info())
	}
	return all
}

func (p *place) close() {
	if p.clocks != nil {
		p.clocks.Close()
	}
	p.dev.Close()
}

// describe tells what the place is. The rates of a group are the sums of its devices'. With facts, a device by itself
// comes with what predictions are made from.
func (p *place) describe(ctx context.Context, facts bool) (Device, error) {
	first := p.devices[0].Info()
	out := Device{Backend: p.name, Name: first.Name, Driver: first.Driver, Peaks: map[string]float64{}}
	if p.several {
		out.Name = kinds(p.devices)
	}
	for _, d := range p.devices {
		known, err := d.Rates(ctx)
		if err != nil {
			return out, err
		}
		if n := len(known.Copy); n > 0 {
			out.Copy += known.Copy[n-1].PerSecond
		}
		if facts && !p.several {
			out.Facts = newDeviceFacts(d, known)
		}
		for name, flops := range peaks(known) {
			out.Peaks[name] += flops
		}
	}
	for _, flops := range out.Peaks {
		out.Flops = max(out.Flops, flops)
	}
	return out, nil
}

// peaks is the arithmetic that a device reached, by the type of the operands.
func peaks(known spmm.Rates) map[string]float64 {
	out := map[string]float64{}
	add := func(name string, flops float64) {
		if flops > 0 {
			out[name] = max(out[name], flops)
		}
	}
	add("f32", known.FMA)
	add("f64", known.FMA64)
	for shape, flops := range known.Matrix {
		add(shape[strings.LastIndexByte(shape, ' ')+1:], flops)
	}
	return out
}

// kinds names each kind of device and how many of it there are.
func kinds(devices []*spmm.Device) string {
	var names []string
	count := map[string]int{}
	for _, d := range devices {
		name := d.Info().Name
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if n := count[name]; n > 1 {
			names[i] = fmt.Sprintf("%d × %s", n, name)
		}
	}
	return strings.Join(names, ", ")
}
