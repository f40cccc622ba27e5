// Cutting a run into batches that are short, so that a cancelled one ends soon.

package backend

import "time"

// Pace is a kernel's observed speed on a device. The zero value says that it has not run yet. A device keeps one for
// each loaded kernel.
type Pace struct {
	perGroup float64 // nanoseconds; 0: not known
	batch    uint64  // the last batch that changed it
}

// Known reports whether the kernel has run, so that its speed is known.
func (p *Pace) Known() bool { return p.perGroup > 0 }

// Batch predicts the time of launches that a device is about to submit together, from the speed of earlier ones. The
// zero value is an empty batch. It is not safe for concurrent use.
type Batch struct {
	serial  uint64
	time    float64 // predicted nanoseconds, of kernels that have run before
	paces   []*Pace
	unknown *Pace // of the last launch, if its kernel has not run yet
	groups  float64
}

// overhead is the time to start a launch, in workgroups.
const overhead = 512

// Add adds a launch and reports whether the batch is long enough: it is predicted to take more than the limit, or its
// last kernel has never run, so that nothing can be predicted.
func (b *Batch) Add(p *Pace, groups [3]uint32, limit time.Duration) (full bool) {
	b.groups = float64(groups[0])*float64(groups[1])*float64(groups[2]) + overhead
	b.paces = append(b.paces, p)
	if p.perGroup == 0 {
		b.unknown = p
		return true
	}
	b.time += b.groups * p.perGroup
	return b.time >= float64(limit)
}

// Done ends the batch, whose launches took this time, and empties it.
func (b *Batch) Done(took time.Duration) {
	b.serial++
	if ns := float64(max(took, 1)); b.unknown != nil {
		b.unknown.perGroup = max(ns-b.time, ns/float64(len(b.paces))) / b.groups
	} else if b.time > 0 {
		for _, p := range b.paces {
			if p.batch != b.serial {
				p.batch = b.serial
				p.perGroup *= ns / b.time
			}
		}
	}
	b.Drop()
}

// Drop empties the batch. It is for launches whose time is not known, for example after an error.
func (b *Batch) Drop() { b.time, b.paces, b.unknown = 0, b.paces[:0], nil }
