// Probes on the devices at hand: what is known of their matrix units.

package conformance

import (
	"regexp"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

// few is an option for runs that are of something else than cases.
var few = regexp.MustCompile(`^csr/f32/T1.*/m5k3n9/empty$`)

func TestProbes(t *testing.T) {
	devices(t, func(t *testing.T, dev backend.Device) {
		m, err := Run(t.Context(), dev, Options{Filter: few})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Probes {
			t.Logf("%+v", p)
		}
		if matrix := len(dev.Caps().Matrix) > 0; (len(m.Probes) > 0) != matrix {
			t.Errorf("%d probes, matrix units: %v", len(m.Probes), matrix)
		}
		if softMatrices(dev) { // sums of f16 are chains of float32 additions there
			want := Probe{
				Type: "f16", Variant: m.Probes[0].Variant, FractionBits: 23, FusedTerms: 1, Rounding: nearestEven,
				ChainRounding: nearestEven, SubnormalInputs: "kept", NaN: m.Probes[0].NaN,
			}
			if m.Probes[0] != want {
				t.Errorf("%+v, want %+v", m.Probes[0], want)
			}
		}
	})
}
