// What a build without the tag cuda says.

//go:build !(cuda && cgo && linux && (amd64 || arm64))

package cuda_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

func TestNotBuiltIn(t *testing.T) {
	d := driver(t)
	_, listed := d.Devices(t.Context())
	_, opened := d.Open(t.Context(), backend.Info{})
	for _, err := range []error{listed, opened} {
		if !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "go build -tags cuda") {
			t.Errorf("%v", err)
		}
	}
}
