// Instances that are built once for all cases that multiply them: those of many formats, and of many runs.

package conformance

import "sync"

const (
	cachedBytes    = 128 << 20 // of all instances that are kept
	cachedInstance = 1 << 20   // of one; larger ones are those of few cases
)

// instanceCache keeps instances, which nobody changes, until it is full. The last one is always kept. Several
// goroutines may use it.
type instanceCache struct {
	mu   sync.Mutex
	kept map[recipe]*instance
	room int64
	last *instance
}

func newInstanceCache() *instanceCache {
	return &instanceCache{kept: map[recipe]*instance{}, room: cachedBytes}
}

// get returns the instance of a recipe.
func (c *instanceCache) get(r recipe) *instance {
	c.mu.Lock()
	p := c.kept[r]
	if p == nil && c.last != nil && c.last.of == r {
		p = c.last
	}
	c.mu.Unlock()
	if p != nil {
		return p
	}
	p = r.build()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = p
	if size := p.bytes(); size <= min(c.room, cachedInstance) && c.kept[r] == nil {
		c.kept[r] = p
		c.room -= size
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
