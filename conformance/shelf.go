// Instances that are built once for all cases that multiply them: those of many formats, and of many runs.

package conformance

import "sync"

const (
	shelfBytes = 128 << 20 // of all instances that are kept
	shelfItem  = 1 << 20   // of one; larger ones are those of few cases
)

// shelf keeps instances, which nobody changes, until it is full. The last one is always kept. Several goroutines may use it.
type shelf struct {
	mu   sync.Mutex
	kept map[recipe]*instance
	room int64
	last *instance
}

func newShelf() *shelf { return &shelf{kept: map[recipe]*instance{}, room: shelfBytes} }

// get returns the instance of a recipe.
func (s *shelf) get(r recipe) *instance {
	s.mu.Lock()
	p := s.kept[r]
	if p == nil && s.last != nil && s.last.of == r {
		p = s.last
	}
	s.mu.Unlock()
	if p != nil {
		return p
	}
	p = r.build()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = p
	if size := p.bytes(); size <= min(s.room, shelfItem) && s.kept[r] == nil {
		s.kept[r] = p
		s.room -= size
	}
	return p
}

// bytes is about what an instance takes of memory.
func (p *instance) bytes() int64 {
	n := 2*len(p.a.RowPtr) + 2*len(p.a.Val) + len(p.b.Data) + len(p.bias) + len(p.want)*(1+len(p.alternatives))
	if p.c != nil {
		n += len(p.c.Data)
	}
	return 4 * int64(n)
}
