// Several devices of one process that multiply together, and how they share a product.

package spmm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/many"
)

// Join makes one Device of opened devices, which belong to it from then on. Each is in it once.
func Join(devs ...*Device) (*Device, error) {
	var all []*Device
	for _, dev := range devs {
		if dev == nil {
			return nil, errNoDevice
		}
		for _, d := range dev.Devices() {
			if slices.Contains(all, d) {
				return nil, fmt.Errorf("device %s:%d is there twice: open it twice", d.Info().Backend, d.Info().Index)
			}
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, errNoDevice
	}
	return &Device{members: all}, nil
}

// Devices returns the devices that multiply together, in the order in which they were named; d itself if it is one.
func (d *Device) Devices() []*Device {
	if d.d != nil {
		return []*Device{d}
	}
	return slices.Clone(d.members)
}

// first is the only device, or the first of several.
func (d *Device) first() *device.Device { return d.all()[0] }

// all are the devices as package plan has them.
func (d *Device) all() []*device.Device {
	if d.d != nil {
		return []*device.Device{d.d}
	}
	var all []*device.Device
	for _, m := range d.members {
		all = append(all, m.d)
	}
	return all
}

// openList opens the devices of a list.
func openList(ctx context.Context, list string, precision dtype.Type) (*Device, error) {
	names, err := expand(ctx, list)
	if err != nil {
		return nil, err
	}
	all := &Device{}
	for _, name := range names {
		d, err := OpenFor(ctx, name, precision)
		if err != nil {
			return nil, errors.Join(err, all.Close())
		}
		all.members = append(all.members, d)
	}
	return all, nil
}

// expand returns the names of the devices in a list, each for Open.
func expand(ctx context.Context, list string) ([]string, error) {
	var names []string
	last := "" // the backend of the name before
	for name := range strings.SplitSeq(list, ",") {
		driver, index, indexed := strings.Cut(strings.TrimSpace(name), ":")
		if _, err := strconv.ParseUint(driver, 10, 31); err == nil && !indexed && last != "" {
			driver, index, indexed = last, driver, true
		}
		last = driver
		switch {
		case driver == "":
			return nil, fmt.Errorf("devices %q: a name is missing: want a list like cuda:all or cuda:0,1", list)
		case !indexed:
			names = append(names, driver)
			continue
		case index != "all":
			names = append(names, driver+":"+index)
			continue
		}
		drv, err := backend.Find(driver)
		if err != nil {
			return nil, err
		}
		infos, err := drv.Devices(ctx)
		if err != nil {
			return nil, named(driver, err)
		}
		for _, i := range infos {
			names = append(names, fmt.Sprintf("%s:%d", i.Backend, i.Index))
		}
	}
	return names, nil
}

// Split is how several devices share a product.
type Split = api.Split

// The splits.
const (
	// AutoSplit takes ByColumns where A fits each device, unless ByRows is predicted to be faster by a tenth or more.
	AutoSplit = api.AutoSplit
	// ByColumns: each device holds all of A, and multiplies it by some columns of B. Nothing moves between devices.
	ByColumns = api.ByColumns
	// ByRows: each device holds some rows of A, about as much work as the others have, and takes all of B.
	ByRows = api.ByRows
)

// Placement says where a Tensor lies on several devices.
type Placement = many.Placement

// The placements besides On.
const (
	// InPlace, the zero value, is where a plan's split needs B or C.
	InPlace = many.InPlace
	// Replicated: each device has all of it.
	Replicated = many.Replicated
	// InColumns and InRows: each device has some columns or rows. They are cut as the plan cuts B and C of that size.
	InColumns = many.ByColumn
	InRows    = many.ByRow
)

// On is all of a matrix on device i of Devices, counted from 0.
func On(i int) Placement { return many.On(i) }
