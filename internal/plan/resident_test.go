// What a plan keeps of a packed matrix in the host's memory.

package plan

import (
	"errors"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// TestLaunchesSeeThePacking: kernels that launch the variant that suits a packed matrix are told of it, when it is on
// the device, what they were told when it was predicted: its statistics and how many work items it makes.
func TestLaunchesSeeThePacking(t *testing.T) {
	a, err := gen.CSR("gen:powerlaw,rows=3000,nnz-per-row=8")
	if err != nil {
		t.Fatal(err)
	}
	eachDevice(t, func(t *testing.T, d *device.Device) {
		for _, format := range []string{"csr", "hrpb", "cvse"} {
			p, err := New(t.Context(), d, a, work.Work{Format: format}, work.Form{})
			if errors.Is(err, backend.ErrUnsupported) {
				continue // it does not fit a device that binds little
			}
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			m := p.exec.(*fast).Matrix
			if len(m.Parts) != 1 {
				continue // each is of its own rows
			}
			want, err := m.Kernel.Encode(a, m.Variant)
			if err != nil {
				t.Fatal(err)
			}
			if got := m.Parts[0].Data; got.Items != want.Items || got.Stats != want.Stats || got.NNZ != want.NNZ {
				t.Errorf("%s: %d pieces, %+v of %d entries; packed: %d, %+v, %d", format, got.Items, got.Stats, got.NNZ, want.Items,
					want.Stats, want.NNZ)
			}
		}
	})
}
