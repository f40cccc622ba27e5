// The list of drivers. Each backend's package adds its own when it is imported, as database/sql's drivers do.

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

// Find returns the driver of that name. For a backend of the project that the program does not import, the
// error is ErrUnavailable and says which import adds it.
func Find(name string) (Driver, error) {
	var have []string
	for _, d := range Drivers() {
		if d.Name() == name {
			return d, nil
		}
		have = append(have, d.Name())
	}
	if err := notImported(name); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("unknown backend %q (this program has %s)", name, strings.Join(have, ", "))
}
