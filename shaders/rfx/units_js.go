// In a browser there are no matrix units.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

func byMatrixUnits() []*spec.Variant { return nil }

func packForMatrixUnits[T formats.Value](_ *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	return nil, fmt.Errorf("%v for %s: %w", kind(v), v.Name, backend.ErrUnsupported)
}
