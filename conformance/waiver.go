// Waivers: published faults of devices, which excuse failures of class T1± and nothing else.

package conformance

import (
	"regexp"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Waiver describes a known fault of a device's matrix units, for which failed cases are accepted.
type Waiver struct {
	Device string `json:"device"` // regular expression of the device's name
	Reason string `json:"reason"`
	Link   string `json:"link"`
}

var waivers = []Waiver{{
	Device: `NAVI3[1-4]|PHOENIX|STRIX|RX 7[0-9]00|Radeon (7[4-8]0|8[0-9]{2})M`,
	Reason: "RDNA3's WMMA negates addends of unlike sign by flipping their bits, which is one unit off",
	Link:   "https://github.com/ROCm/rocm-systems/issues/12056",
}}

// waiverFor returns the waiver for a case of a device, nil if there is none.
func waiverFor(info backend.Info, v *spec.Variant, class string) *Waiver {
	if class != MixedSign || v == nil || !v.Matrix {
		return nil
	}
	for i := range waivers {
		if regexp.MustCompile(waivers[i].Device).MatchString(info.Name) {
			return &waivers[i]
		}
	}
	return nil
}
