// Sampled products, which one device computes.

package many

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/plan"
)

var errSample = fmt.Errorf("sampled products on several devices, or with a limit of memory: prepare the matrix on one device: %w",
	backend.ErrUnsupported)

// Sample refuses: the pattern is on several devices.
func (g *Plan) Sample(context.Context, plan.Sampled) (api.Timing, error) {
	return api.Timing{}, errSample
}

// StartSample refuses, as Sample does.
func (g *Plan) StartSample(context.Context, plan.Sampled) (backend.Pending, error) {
	return nil, errSample
}

// EnqueueSample refuses, as Sample does.
func (g *Plan) EnqueueSample(uintptr, plan.Sampled) error { return errSample }
