// Specs: what to measure, as data. Those of this project are in bench/specs.

package benchmark

import (
	"encoding/json"
	"fmt"
	"io"
)

// Spec is a file that says what to measure. Lists that Products leave out are those of the spec.
type Spec struct {
	About string   `json:"about"`           // what it is for
	Peers []string `json:"peers,omitempty"` // programs
	Facts bool     `json:"facts,omitempty"` // Sweep.Facts
	Lists
	Products []Lists `json:"products"`
}

// Lists are Products as words, not yet looked at.
type Lists struct {
	Matrices   []string `json:"matrices,omitempty"`
	Columns    []int    `json:"columns,omitempty"` // of B
	Backends   []string `json:"backends,omitempty"`
	Formats    []string `json:"formats,omitempty"`
	Precisions []string `json:"precisions,omitempty"`
	Modes      []string `json:"modes,omitempty"`
	Ways       []Way    `json:"ways,omitempty"`
	Limits     []Limit  `json:"limits,omitempty"`
}

// Or returns the lists with those of another where they are empty.
func (l Lists) Or(other Lists) Lists {
	l.Matrices, l.Columns = or(l.Matrices, other.Matrices), or(l.Columns, other.Columns)
	l.Backends, l.Formats = or(l.Backends, other.Backends), or(l.Formats, other.Formats)
	l.Precisions, l.Modes = or(l.Precisions, other.Precisions), or(l.Modes, other.Modes)
	l.Ways, l.Limits = or(l.Ways, other.Ways), or(l.Limits, other.Limits)
	return l
}

func or[T any](list, other []T) []T {
	if len(list) > 0 {
		return list
	}
	return other
}

// mostOfSpec is how long a spec may be, in bytes.
const mostOfSpec = 1 << 20

// ReadSpec reads a spec. name is for errors.
func ReadSpec(in io.Reader, name string) (*Spec, error) {
	d := json.NewDecoder(io.LimitReader(in, mostOfSpec))
	d.DisallowUnknownFields()
	s := &Spec{}
	if err := d.Decode(s); err != nil {
		return nil, fmt.Errorf("%s is no spec of spmmrun bench: %w", name, err)
	}
	if len(s.Products) == 0 {
		return nil, fmt.Errorf("%s is no spec of spmmrun bench: it has no products", name)
	}
	for i := range s.Products {
		s.Products[i] = s.Products[i].Or(s.Lists)
		for _, w := range s.Products[i].Ways {
			if err := w.Validate(); err != nil {
				return nil, fmt.Errorf("%s, products %d, ways: %w", name, i, err)
			}
		}
		for _, l := range s.Products[i].Limits {
			if err := l.Validate(); err != nil {
				return nil, fmt.Errorf("%s, products %d, limits: %w", name, i, err)
			}
		}
	}
	return s, nil
}
