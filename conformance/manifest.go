// Manifests: what a device was found to do, as JSON that is checked in.

package conformance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/inflate"
)

// Suite is the version of the suite: of its cases, their inputs and the criteria. Schema is the version of the
// manifest's JSON.
const (
	Suite  = "1"
	Schema = 1
)

// Manifest is the record of one run on one device.
type Manifest struct {
	Schema int    `json:"schema"`
	Suite  string `json:"suite"`
	Tier   Tier   `json:"tier"`
	Filter string `json:"filter,omitempty"` // if only some cases were selected
	Bare   bool   `json:"bare,omitempty"`   // if memory around buffers was not watched
	// Incomplete is the number of cases that ran before the run ended early; nil: it ran to its end.
	Incomplete *Part `json:"incomplete,omitempty"`
	// Unlisted tells that matrix shapes were run that the device does not list.
	Unlisted bool           `json:"unlisted,omitempty"`
	Commit   string         `json:"commit,omitempty"` // of the source; with "+dirty" if it was changed
	Go       string         `json:"go"`
	Device   backend.Info   `json:"device"`
	Caps     Caps           `json:"caps"`
	Summary  map[Status]int `json:"summary"`
	// Seal is the SHA-256 of the manifest as Encode writes it, with this field empty. It detects accidental changes. A
	// forger can seal anew, and must then pass Verifier.
	Seal string `json:"seal"`
	// Probes describe the device's float matrix unit, one for each input type; null if there is none.
	Probes []Probe `json:"probes"`
	// ProbeErrors are of probes that could not be made.
	ProbeErrors []string `json:"probe_errors,omitempty"`
	Modules     []Module `json:"modules,omitempty"` // every kernel that was loaded
	// Variants are the kernels' forms that ran, with the choices compiled into them.
	Variants []Variant `json:"variants,omitempty"`
	Waivers  []Waiver  `json:"waivers,omitempty"` // those that the device was granted
	Cases    []Result  `json:"cases,omitempty"`
}

// Part is a number of cases out of all cases of a run.
type Part struct {
	Ran int `json:"ran"`
	Of  int `json:"of"`
}

func (p Part) String() string { return fmt.Sprintf("%d of %d cases", p.Ran, p.Of) }

// Module identifies code by the digest of its text or binary. Go functions have none: the manifest's commit and its
// version of Go identify them.
type Module struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	SHA256 string `json:"sha256,omitempty"`
}

// Variant is a compiled form of a kernel.
type Variant struct {
	Name     string            `json:"name"`
	Local    [3]uint32         `json:"local"`
	Subgroup uint32            `json:"subgroup,omitempty"`
	Consts   map[string]uint32 `json:"consts,omitempty"`
	Matrix   bool              `json:"matrix,omitempty"`   // it uses the device's matrix units
	Unlisted bool              `json:"unlisted,omitempty"` // the device does not list its matrix shape
}

// Status is the outcome of a case.
type Status string

// The outcomes. Unsupported is not a pass: nothing was shown.
const (
	Pass        Status = "pass"
	Fail        Status = "fail"
	Waived      Status = "waived"      // failed, as a published waiver says it may
	Unsupported Status = "unsupported" // the device has no kernel for it
)

// Result is the outcome of one case with one variant. Digests are the first 16 hexadecimal digits of a SHA-256.
type Result struct {
	ID       string   `json:"id"` // which says how the inputs are made
	Variant  string   `json:"variant,omitempty"`
	Input    string   `json:"input"`              // digest of the inputs
	Grid     string   `json:"grid,omitempty"`     // workgroups launched
	Output   string   `json:"output,omitempty"`   // digest of C in canonical form
	Ratio    *float64 `json:"ratio,omitempty"`    // T2: the largest error over its bound
	P        int      `json:"p,omitempty"`        // T3: the precision of the product
	Lossless bool     `json:"lossless,omitempty"` // T3: which was found to lose nothing
	Note     string   `json:"note,omitempty"`
	Status   Status   `json:"status"`
	Error    string   `json:"error,omitempty"`
}

// Encode writes the manifest, sealed, as JSON with a line for each module, variant and case.
func (m *Manifest) Encode(w io.Writer) error {
	sealed := *m
	seal, err := m.seal()
	if err != nil {
		return err
	}
	sealed.Seal = seal
	text, err := sealed.text()
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// seal returns the right seal.
func (m *Manifest) seal() (string, error) {
	open := *m
	open.Seal = ""
	text, err := open.text()
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

func (m *Manifest) text() ([]byte, error) {
	head := *m
	head.Modules, head.Variants, head.Cases = nil, nil, nil
	text, err := json.MarshalIndent(&head, "", " ")
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(text, []byte("\n}")))
	if err := errors.Join(lines(b, "modules", m.Modules), lines(b, "variants", m.Variants),
		lines(b, "cases", m.Cases)); err != nil {
		return nil, err
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

// lines adds a list to a JSON object.
func lines[T any](b *bytes.Buffer, name string, list []T) error {
	for i, x := range list {
		line, err := json.Marshal(x)
		if err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(b, ",\n %q: [\n  %s", name, line)
		} else {
			fmt.Fprintf(b, ",\n  %s", line)
		}
	}
	if len(list) > 0 {
		b.WriteString("\n ]")
	}
	return nil
}

// MostBytes is the maximum length of a manifest's text: several times that of any device so far.
const MostBytes = 32 << 20

// readText reads the text of a manifest, which may be compressed by gzip.
func readText(r io.Reader) ([]byte, error) {
	in := bufio.NewReader(io.LimitReader(r, MostBytes+1))
	plain := io.Reader(in)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := inflate.Gzip(in)
		if err != nil {
			return nil, fmt.Errorf("manifest: %w", err)
		}
		plain = z
	}
	text, err := io.ReadAll(io.LimitReader(plain, MostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if len(text) > MostBytes {
		return nil, fmt.Errorf("no manifest: it has more than %d bytes", MostBytes)
	}
	return text, nil
}

// Decode reads a manifest, plain or compressed by gzip, and checks it against the schema. Verifier checks its claims.
func Decode(r io.Reader) (*Manifest, error) {
	text, err := readText(r)
	if err != nil {
		return nil, err
	}
	var head struct{ Schema *int }
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("no manifest: %w", err)
	}
	switch {
	case head.Schema == nil:
		return nil, errors.New("no manifest: it names no schema")
	case *head.Schema != Schema:
		return nil, fmt.Errorf("manifest of schema %d, this version reads %d", *head.Schema, Schema)
	}
	if err := schemaCheck(text); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	var m Manifest
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	return &m, nil
}
