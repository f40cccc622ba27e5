// The project's backends by name, and the package that registers each.

package backend

import (
	"fmt"
	"slices"
)

// module is where the packages of the project's backends lie.
const module = "github.com/spmmrun/spmm/"

// known are the project's backends. A program has those whose packages it imports.
var known = []struct{ name, pkg string }{
	{"cpu", module + "portable/cpu"},
	{"cuda", module + "backend/cuda"},
	{"vulkan", module + "backend/vulkan"},
	{"webgpu", module + "portable/webgpu"},
}

// NotImported lists the project's backends that this program does not import, sorted by name. Find's error names the
// import that adds each.
func NotImported() []string {
	var names []string
	for _, k := range known {
		if !slices.ContainsFunc(Drivers(), func(d Driver) bool { return d.Name() == k.name }) {
			names = append(names, k.name)
		}
	}
	return names
}

// notImported is the error of one of them, nil for any other name.
func notImported(name string) error {
	for _, k := range known {
		if k.name == name {
			return fmt.Errorf("%s: %w: this program does not import it; add: import _ %q", name, ErrUnavailable, k.pkg)
		}
	}
	return nil
}
