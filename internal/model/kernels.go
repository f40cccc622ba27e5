// What a kernel's tiles cost: numbers of the kernel's own cost function.

package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/backend"
)

// Kernel returns the numbers of a kernel's own cost function in the model of all devices that load some code, for
// FORMAT/KERNEL or FORMAT/KERNEL/TILE; what a name leaves out is as of the name without its last part. T is a struct
// with a field for each. By these numbers a kernel chooses among its tiles, and the order of a sum follows the tile: so
// no model of a single device, and none of the user's, replaces them. It panics where the kernel has none, which is a
// mistake in the tree.
func Kernel[T any](code backend.Code, name string) T {
	var x T
	found := false
	parts := strings.Split(name, "/")
	for _, m := range embedded() {
		if m.Code != code.String() || m.Devices != "" {
			continue
		}
		for i := range parts {
			name := strings.Join(parts[:i+1], "/")
			if text := m.Kernels[name]; text != nil {
				decode(name, text, &x)
				found = found || i > 0
			}
		}
	}
	if !found {
		panic(fmt.Sprintf("device model of %v: no numbers of kernel %s", code, name))
	}
	return x
}

// decode adds a kernel's numbers to those of x.
func decode(name string, text json.RawMessage, x any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(x); err != nil {
		panic(fmt.Sprintf("kernel %s: %v", name, err))
	}
}

// kernelNumbers refuses what is not an object of plausible numbers.
func kernelNumbers(name string, text json.RawMessage) error {
	var numbers map[string]float64
	if err := json.Unmarshal(text, &numbers); err != nil {
		return fmt.Errorf("kernel %.40q: %w", name, err)
	}
	for field, x := range numbers {
		if err := within(field, x, mostNS); err != nil {
			return fmt.Errorf("kernel %.40q: %w", name, err)
		}
	}
	return nil
}
