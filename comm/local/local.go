// Package local is a Comm whose ranks are goroutines of one process: for tests, and with one rank for a program that
// nobody launched as several.
package local

import (
	"errors"
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/comm"
)

// Self returns a Comm of one rank.
func Self() comm.Comm { return newGroup(1).ranks()[0] }

// Run calls f on size ranks at the same time. It returns their errors, each with its rank's number. A rank that returns
// an error, or panics, aborts the others.
func Run(size int, f func(comm.Comm) error) error {
	if size < 1 {
		return fmt.Errorf("comm/local: %d ranks", size)
	}
	errs := make([]error, size)
	var wg sync.WaitGroup
	for r, c := range newGroup(size).ranks() {
		wg.Go(func() {
			done := false
			defer func() {
				if !done || errs[r] != nil {
					c.Abort(1)
				}
			}()
			if err := f(c); err != nil {
				errs[r] = fmt.Errorf("rank %d: %w", r, err)
			}
			done = true
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// group holds what the ranks share: a slot for each to show what it brings to the operation in progress.
type group struct {
	size  int
	slots []any

	mu      sync.Mutex
	cond    sync.Cond
	waiting int
	turn    int  // of the barrier
	aborted bool // no barrier waits any more
}

func newGroup(size int) *group {
	g := &group{size: size, slots: make([]any, size)}
	g.cond.L = &g.mu
	return g
}

func (g *group) ranks() []comm.Comm {
	cs := make([]comm.Comm, g.size)
	for r := range cs {
		cs[r] = &rank{g, r}
	}
	return cs
}

// barrier returns once all ranks are here, or the job is aborted.
func (g *group) barrier() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	turn := g.turn
	if g.waiting++; g.waiting == g.size {
		g.waiting = 0
		g.turn++
		g.cond.Broadcast()
	}
	for g.turn == turn && !g.aborted {
		g.cond.Wait()
	}
	if g.turn == turn {
		return fmt.Errorf("comm/local: %w", comm.ErrAborted)
	}
	return nil
}

// rank is one of a group's.
type rank struct {
	*group
	r int
}

func (c *rank) Rank() int      { return c.r }
func (c *rank) Size() int      { return c.size }
func (c *rank) Close() error   { return nil }
func (c *rank) Barrier() error { return c.barrier() }

func (c *rank) Abort(int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	c.cond.Broadcast()
}

// together shows mine to all ranks and calls f once all show theirs, with these in order. What they show belongs to f
// until every rank's has returned.
func together[T any](c *rank, mine T, f func(all []T) error) error {
	c.slots[c.r] = mine
	if err := c.barrier(); err != nil {
		return err
	}
	all := make([]T, c.size)
	for r, s := range c.slots {
		all[r] = s.(T)
	}
	err := f(all)
	return errors.Join(err, c.barrier())
}

func (c *rank) Bcast(data []byte, root int) error {
	if err := comm.CheckRoot(c, root); err != nil {
		return err
	}
	return together(c, data, func(all [][]byte) error {
		if len(data) != len(all[root]) {
			return fmt.Errorf("comm/local: Bcast of %d bytes to a buffer of %d", len(all[root]), len(data))
		}
		if c.r != root {
			copy(data, all[root])
		}
		return nil
	})
}

func (c *rank) AllReduce(data []int64, op comm.Op) error {
	if err := comm.CheckOp(op); err != nil {
		return err
	}
	out := make([]int64, len(data))
	err := together(c, data, func(all [][]int64) error { return reduce(out, all, op) })
	copy(data, out)
	return err
}

// reduce leaves in out the reduction of the ranks' elements.
func reduce(out []int64, all [][]int64, op comm.Op) error {
	for r, data := range all {
		if len(data) != len(all[0]) {
			return fmt.Errorf("comm/local: rank %d reduces %d elements, rank 0 %d", r, len(data), len(all[0]))
		}
		for i, x := range data {
			switch {
			case r == 0:
				out[i] = x
			case op == comm.Sum:
				out[i] += x
			default:
				out[i] = max(out[i], x)
			}
		}
	}
	return nil
}

// parcel is a buffer with the parts that are for each rank.
type parcel struct {
	data  []byte
	parts []comm.Part
}

func (c *rank) AllToAllV(item int, send []byte, sent []comm.Part, recv []byte, received []comm.Part) error {
	if err := errors.Join(comm.CheckParts(c, item, send, sent), comm.CheckParts(c, item, recv, received)); err != nil {
		return err
	}
	return together(c, parcel{send, sent}, func(all []parcel) error {
		for r, from := range all {
			if err := move(item, recv, received[r], from.data, from.parts[c.r]); err != nil {
				return fmt.Errorf("comm/local: from rank %d: %w", r, err)
			}
		}
		return nil
	})
}

func (c *rank) AllGatherV(item int, send, recv []byte, parts []comm.Part) error {
	if err := comm.CheckGather(c, item, send, recv, parts); err != nil {
		return err
	}
	return together(c, send, func(all [][]byte) error {
		for r, from := range all {
			if err := move(item, recv, parts[r], from, comm.Part{Count: len(from) / item}); err != nil {
				return fmt.Errorf("comm/local: from rank %d: %w", r, err)
			}
		}
		return nil
	})
}

// move copies a part of one buffer to a part of another.
func move(item int, to []byte, there comm.Part, from []byte, here comm.Part) error {
	if there.Count != here.Count {
		return fmt.Errorf("%d items sent, %d expected", here.Count, there.Count)
	}
	copy(to[there.Start*item:][:there.Count*item], from[here.Start*item:][:here.Count*item])
	return nil
}
