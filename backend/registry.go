// The list of drivers, filled by each backend's init.

package backend

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

var registry struct {
	sync.Mutex
	drivers []Driver
}

// Register adds a driver under its name. A second driver of the same name is a programming error.
func Register(d Driver) {
	registry.Lock()
	defer registry.Unlock()
	for _, o := range registry.drivers {
		if o.Name() == d.Name() {
			panic("backend: driver " + d.Name() + " registered twice")
		}
	}
	registry.drivers = append(registry.drivers, d)
}

// Drivers returns the registered drivers, sorted by name.
func Drivers() []Driver {
	registry.Lock()
	defer registry.Unlock()
	ds := slices.Clone(registry.drivers)
	slices.SortFunc(ds, func(a, b Driver) int { return strings.Compare(a.Name(), b.Name()) })
	return ds
}

// Find returns the driver of that name.
func Find(name string) (Driver, error) {
	var have []string
	for _, d := range Drivers() {
		if d.Name() == name {
			return d, nil
		}
		have = append(have, d.Name())
	}
	return nil, fmt.Errorf("unknown backend %q (this build has %s)", name, strings.Join(have, ", "))
}
