// What several runners find, joined: whole when they have come to their end, and in part at any time.

package conformance

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// record joins what runners find.
type record struct {
	mu       sync.Mutex
	progress func(done, all int, r *Result) // nil: nobody asks
	cases    [][]Result                     // by the places of tests; nil where one has not run
	done     int                            // of these
	modules  map[string]Module
	ran      map[string]Variant
	waivers  []Waiver
}

func newRecord(progress func(done, all int, r *Result), tests int) *record {
	return &record{progress: progress, cases: make([][]Result, tests), modules: map[string]Module{},
		ran: map[string]Variant{}}
}

// report tells of a case with one variant, the last of the case or not.
func (c *record) report(last bool, x *Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last {
		c.done++
	}
	if c.progress != nil {
		c.progress(c.done, len(c.cases), x)
	}
}

// add keeps the results of test i, and what its runner has loaded and run.
func (c *record) add(i int, found []Result, r *runner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cases[i] = found
	c.take(r)
}

// take keeps what a runner has loaded and run.
func (c *record) take(r *runner) {
	r.dev.mu.Lock()
	maps.Copy(c.modules, r.dev.modules)
	r.dev.mu.Unlock()
	maps.Copy(c.ran, r.ran)
	for _, w := range r.waivers {
		if !slices.Contains(c.waivers, w) {
			c.waivers = append(c.waivers, w)
		}
	}
}

// partial hands over a manifest, which has a head, of what has run. Nothing is reported afterwards.
func (c *record) partial(m *Manifest, keep func(*Manifest)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.progress = nil
	ran := 0
	for _, found := range c.cases {
		if len(found) > 0 {
			ran++
		}
	}
	m.Incomplete = &Part{Ran: ran, Of: len(c.cases)}
	if keep != nil && ran > 0 && c.fill(m) == nil {
		keep(m)
	}
}

// whole completes a manifest of all that has run, with what a runner has loaded since.
func (c *record) whole(m *Manifest, r *runner) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(r)
	return c.fill(m)
}

// fill completes a manifest that has a head, and seals it.
func (c *record) fill(m *Manifest) (err error) {
	m.Cases = slices.Concat(c.cases...)
	m.Waivers = slices.SortedFunc(slices.Values(c.waivers),
		func(a, b Waiver) int { return strings.Compare(a.Device, b.Device) })
	for _, name := range slices.Sorted(maps.Keys(c.modules)) {
		m.Modules = append(m.Modules, c.modules[name])
	}
	for _, name := range slices.Sorted(maps.Keys(c.ran)) {
		m.Variants = append(m.Variants, c.ran[name])
	}
	for _, x := range m.Cases {
		m.Summary[x.Status]++
	}
	m.Seal, err = m.seal()
	return err
}
