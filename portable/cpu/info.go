// The processor as a device.

package cpu

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/memory"
)

var processor = sync.OnceValue(func() backend.Info {
	model, vendor := names()
	switch vendor {
	case "GenuineIntel":
		vendor = "Intel"
	case "AuthenticAMD":
		vendor = "AMD"
	}
	return backend.Info{
		Backend: "cpu",
		Name:    cmp.Or(strings.Join(strings.Fields(model), " "), runtime.GOARCH+" processor"),
		Vendor:  vendor,
		Driver:  fmt.Sprintf("Go %s %s/%s", strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH),
		Kind:    "cpu",
		Memory:  memory.Total(),
	}
})
