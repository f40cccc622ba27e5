// Package digests tells which devices gave the same bits, from a table that is made of manifests and small enough for a
// web page: of each case whose output must be the same on every device, the first bits of the digests of its inputs and
// output.
package digests

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/conformance"
)

// Of the digests, in hexadecimal digits.
const (
	inputDigits  = 8
	outputDigits = 16
)

// Table holds the digests that devices gave.
type Table struct {
	Devices []string `json:"devices"`
	// Cases holds by a case's name the words "INPUT OUTPUT DEVICES": digests that begin so, and the devices that gave the
	// output, bit i for Devices[i], in hexadecimal. Other inputs, of another version of the suite, follow after commas.
	Cases map[string]string `json:"cases"`
}

// entry is a word of a case.
type entry struct {
	input, output string
	devices       uint64
}

func parse(s string) []entry {
	var es []entry
	for part := range strings.SplitSeq(s, ",") {
		var e entry
		if n, _ := fmt.Sscanf(part, "%s %s %x", &e.input, &e.output, &e.devices); n == 3 {
			es = append(es, e)
		}
	}
	return es
}

func (e entry) String() string { return fmt.Sprintf("%s %s %x", e.input, e.output, e.devices) }

// of returns what of a result goes into a table; false if its output may differ from device to device, or it has none.
func of(r *conformance.Result) (entry, bool) {
	class := conformance.Class(r.ID)
	if class == conformance.General || class == conformance.Subnormal || r.Status != conformance.Pass ||
		len(r.Input) < inputDigits || len(r.Output) < outputDigits {
		return entry{}, false
	}
	return entry{input: r.Input[:inputDigits], output: r.Output[:outputDigits]}, true
}

// Add adds a manifest to the table, under the name of its device, and of its driver if another device has that name.
func (t *Table) Add(m *conformance.Manifest) error {
	if len(t.Devices) == 64 {
		return fmt.Errorf("a table holds at most 64 devices")
	}
	device := uint64(1) << len(t.Devices)
	name := fmt.Sprintf("%s (%s)", m.Device.Name, m.Device.Backend)
	if slices.Contains(t.Devices, name) {
		name = fmt.Sprintf("%s (%s, %s)", m.Device.Name, m.Device.Backend, m.Device.Driver)
	}
	t.Devices = append(t.Devices, name)
	if t.Cases == nil {
		t.Cases = map[string]string{}
	}
	for i := range m.Cases {
		r := &m.Cases[i]
		e, ok := of(r)
		if !ok {
			continue
		}
		known := parse(t.Cases[r.ID])
		if !mark(known, e, device) {
			e.devices = device
			known = append(known, e)
		}
		var words []string
		for _, e := range known {
			words = append(words, e.String())
		}
		t.Cases[r.ID] = strings.Join(words, ",")
	}
	return nil
}

// mark says that the device gave the output of e, if it is among the known.
func mark(known []entry, e entry, device uint64) bool {
	for i := range known {
		if known[i].input == e.input && known[i].output == e.output {
			known[i].devices |= device
			return true
		}
	}
	return false
}

// Write writes the table as JSON.
func (t *Table) Write(w io.Writer) error { return json.NewEncoder(w).Encode(t) }

// Read reads what Write writes.
func Read(r io.Reader) (*Table, error) {
	t := &Table{}
	if err := json.NewDecoder(r).Decode(t); err != nil {
		return nil, fmt.Errorf("table of digests: %w", err)
	}
	return t, nil
}

// Agreement says how a device's outputs compare with a manifest's.
type Agreement struct {
	Device    string   `json:"device"`
	Same      int      `json:"same"`      // cases with the same bits
	Compared  int      `json:"compared"`  // cases that both have, of the same inputs
	Different []string `json:"different"` // the names of the others
}

// Compare compares a manifest's outputs with those of each device in the table.
func (t *Table) Compare(m *conformance.Manifest) []Agreement {
	as := make([]Agreement, len(t.Devices))
	for i, name := range t.Devices {
		as[i] = Agreement{Device: name, Different: []string{}}
	}
	seen := map[string]bool{}
	for i := range m.Cases {
		r := &m.Cases[i]
		mine, ok := of(r)
		if key := r.ID + " " + mine.output; !ok || seen[key] {
			continue // another variant gave the same
		} else {
			seen[key] = true
		}
		for j := range t.Devices {
			compared, same := false, false
			for _, e := range parse(t.Cases[r.ID]) {
				if e.input == mine.input && e.devices>>j&1 != 0 {
					compared, same = true, same || e.output == mine.output
				}
			}
			switch {
			case same:
				as[j].Compared++
				as[j].Same++
			case compared:
				as[j].Compared++
				as[j].Different = append(as[j].Different, r.ID)
			}
		}
	}
	return as
}
