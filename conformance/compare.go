// Comparing manifests: which devices gave the same bits.

package conformance

import (
	"fmt"
	"slices"
	"strings"
)

// Agreement is the comparison of several devices' outputs for one case.
type Agreement struct {
	ID string
	// Exact: right outputs are the same on every device (classes T1, nonfinite and T3). In other cases they may differ:
	// T2's depend on the device's rounding, and subnormal operands may be flushed or not.
	Exact bool
	// Groups numbers the different outputs from 0, and holds that of each manifest, -1 if it has none. In
	// an exact case it is of the outputs of all variants, otherwise of the first variant's.
	Groups []int
	// Wrong says what differs in an exact case; empty if all agree.
	Wrong string
}

// Same reports whether manifests i and j both have outputs, and whether these are the same.
func (a *Agreement) Same(i, j int) (both, same bool) {
	both = a.Groups[i] >= 0 && a.Groups[j] >= 0
	return both, both && a.Groups[i] == a.Groups[j]
}

// Agreements compares manifests case by case, in the order of their cases. Cases of different versions of the suite are
// different cases.
func Agreements(mans ...*Manifest) []Agreement {
	at := map[string]int{}
	var cases []*agreement
	for i, m := range mans {
		for j := range m.Cases {
			r := &m.Cases[j]
			if r.Output == "" {
				continue
			}
			key := m.Suite + " " + r.ID
			if _, ok := at[key]; !ok {
				at[key] = len(cases)
				cases = append(cases, &agreement{
					Agreement: Agreement{ID: r.ID, Exact: Class(r.ID) != General && Class(r.ID) != Subnormal},
					given:     make([][]string, len(mans)),
				})
			}
			cases[at[key]].add(i, m, r)
		}
	}
	out := make([]Agreement, len(cases))
	for i, c := range cases {
		out[i] = c.group()
	}
	return out
}

// agreement is an Agreement in the making.
type agreement struct {
	Agreement
	given [][]string // the different outputs of each manifest
	first *Result    // of those that must be the same
	who   string     // gave it
}

// add adds an output of manifest i.
func (a *agreement) add(i int, m *Manifest, r *Result) {
	if given := a.given[i]; len(given) == 0 || a.Exact && !slices.Contains(given, r.Output) {
		a.given[i] = append(given, r.Output)
	}
	if !r.exact() || a.Wrong != "" {
		return
	}
	who := m.Device.String() + " with " + r.Variant
	switch {
	case a.first == nil:
		a.first, a.who = r, who
	case r.Input != a.first.Input:
		a.Wrong = fmt.Sprintf("%s: %s and %s had other inputs", r.ID, a.who, who)
	case r.Output != a.first.Output:
		a.Wrong = fmt.Sprintf("%s: %s gave %s, %s gave %s", r.ID, a.who, a.first.Output, who, r.Output)
	}
}

// group numbers what was given.
func (a *agreement) group() Agreement {
	var different []string
	for _, given := range a.given {
		g := -1
		if len(given) > 0 {
			outputs := strings.Join(given, " ")
			if g = slices.Index(different, outputs); g < 0 {
				g, different = len(different), append(different, outputs)
			}
		}
		a.Groups = append(a.Groups, g)
	}
	return a.Agreement
}

// Compare returns a description of each case whose outputs must be the same in all manifests but are not.
func Compare(mans ...*Manifest) []string {
	var out []string
	for _, a := range Agreements(mans...) {
		if a.Wrong != "" {
			out = append(out, a.Wrong)
		}
	}
	return out
}

// Class returns the class of the case of this name: T1+, T2 and so on.
func Class(id string) string {
	for _, word := range strings.Split(id, "/") {
		switch word {
		case SameSign, MixedSign, NonFinite, Subnormal, General, Reproducible:
			return word
		}
	}
	return ""
}
