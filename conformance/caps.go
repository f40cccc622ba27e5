// The capabilities that a manifest records: all that decides which variants must run on the device.

package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
)

// Caps are the capabilities of a device that decide which variants run.
type Caps struct {
	Code     string    `json:"code"`
	Arch     int       `json:"arch,omitempty"`
	Matrix   []string  `json:"matrix,omitempty"`
	Subgroup [2]uint32 `json:"subgroup"` // least and largest
	F16      bool      `json:"f16"`
	Int8     bool      `json:"int8"`
	F64      bool      `json:"f64,omitempty"`
	Lanes    bool      `json:"lanes,omitempty"`
	Dot4     bool      `json:"dot4,omitempty"`
	Limits   Limits    `json:"limits"`
}

// Limits are the numbers of backend.Caps that bound workgroups and bindings.
type Limits struct {
	Shared      uint32    `json:"shared"`      // bytes of shared memory of a workgroup
	Invocations uint32    `json:"invocations"` // of a workgroup
	Local       [3]uint32 `json:"local"`       // the same by dimension
	Binding     int64     `json:"binding"`     // bytes that one argument may cover; 0: no limit but memory
	Pinned      bool      `json:"pinned"`      // a kernel may require a subgroup size
}

// saturating marks matrix shapes whose sums saturate.
const saturating = " saturating"

// recordCaps returns what a manifest records of a device's capabilities.
func recordCaps(c backend.Caps) Caps {
	r := Caps{
		Code: c.Code.String(), Arch: c.Arch, Subgroup: [2]uint32{c.SubgroupMin, c.SubgroupMax}, F16: c.F16, Int8: c.Int8,
		F64: c.F64, Lanes: c.Lanes, Dot4: c.Dot4,
		Limits: Limits{c.SharedBytes, c.MaxInvocations, c.MaxLocal, c.MaxBinding, c.SubgroupPinned},
	}
	for _, s := range c.Matrix {
		text := s.String()
		if s.Saturating {
			text += saturating
		}
		r.Matrix = append(r.Matrix, text)
	}
	return r
}

// device returns the capabilities that m records.
func (m *Manifest) device() (backend.Caps, error) {
	r, l := &m.Caps, &m.Caps.Limits
	c := backend.Caps{
		Arch: r.Arch, SubgroupMin: r.Subgroup[0], SubgroupMax: r.Subgroup[1], F16: r.F16, Int8: r.Int8, F64: r.F64,
		Lanes: r.Lanes, Dot4: r.Dot4,
		SharedBytes: l.Shared, MaxInvocations: l.Invocations, MaxLocal: l.Local, MaxBinding: l.Binding,
		SubgroupPinned: l.Pinned,
	}
	for code := backend.CodeGo; code <= backend.CodeWGSL; code++ {
		if code.String() == r.Code {
			c.Code = code
		}
	}
	if want, known := codes[m.Device.Backend]; known && want != c.Code {
		return c, fmt.Errorf("backend %s does not run %s code", m.Device.Backend, r.Code)
	}
	for _, text := range r.Matrix {
		s, err := parseShape(text)
		if err != nil {
			return c, err
		}
		c.Matrix = append(c.Matrix, s)
	}
	return c, nil
}

// codes are the kinds of code that backends run.
var codes = map[string]backend.Code{
	"cpu": backend.CodeGo, "cuda": backend.CodePTX, "vulkan": backend.CodeSPIRV, "webgpu": backend.CodeWGSL,
}

// parseShape is the inverse of backend.MatrixShape.String, with the mark of saturating sums.
func parseShape(text string) (s backend.MatrixShape, err error) {
	plain, sat := strings.CutSuffix(text, saturating)
	var types string
	if _, err = fmt.Sscanf(plain, "%d×%d×%d %s", &s.M, &s.N, &s.K, &types); err == nil {
		for i, name := range strings.FieldsFunc(types, func(c rune) bool { return strings.ContainsRune("·+→", c) }) {
			t, e := dtype.Parse(name)
			switch {
			case e != nil:
				err = e
			case i < 4:
				*[]*dtype.Type{&s.A, &s.B, &s.C, &s.D}[i] = t
			}
		}
	}
	if s.Saturating = sat; err == nil && s.String() != plain {
		err = errors.New("want M×N×K A·B+C→D")
	}
	if err != nil {
		return s, fmt.Errorf("matrix shape %q: %w", text, err)
	}
	return s, nil
}
