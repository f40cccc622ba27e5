package rfx

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// MaxLongest is the most entries that a row may have and not be done in pieces.
const MaxLongest = 1 << 15

// PackWith is Encode with the rows in pieces of so many entries.
func PackWith[T formats.Value](a *formats.CSR[T], p rfx.P, longest int) *spec.Encoded {
	return pack(a, p, longest)
}
