// A pool of goroutines that share the chunks of one job at a time.

package cpu

import (
	"fmt"
	"sync/atomic"
)

const (
	// chunksPerWorker: chunks are taken as workers come free, so that uneven groups even out.
	chunksPerWorker = 32
	// looks is how often a worker without work looks for some before it sleeps, for some tens of microseconds in all: to
	// be woken takes as long as a small product, and the next launch follows at once, or after one that is too small to be
	// shared. It pauses in between, since a thread that waits takes units from another on the same core.
	looks, pauses = 1 << 10, 4
)

// closed is more than there are helpers.
const closed = 1 << 30

// pool runs one job at a time; the caller of do works too, helped by one goroutine for each further worker.
// do may be called by one goroutine at a time.
//
// A helper joins a job when it comes to run, and the caller waits for those that have joined: one that sleeps, or whose
// processor is taken by another program, delays no small job.
type pool struct {
	wake []chan struct{} // one per helper
	done chan struct{}   // the last helper of a closed job says so

	// The job: fn over 0…n-1.
	fn       func(lo, hi int64)
	n, chunk int64
	stop     <-chan struct{} // closed when the job is not wanted any more; nil: never
	next     atomic.Int64    // first item nobody has taken
	busy     atomic.Int32    // helpers at work, plus closed where no more may join
	failure  atomic.Pointer[error]
}

func (p *pool) start(workers int) {
	p.done = make(chan struct{}, 1)
	p.busy.Store(closed)
	for range workers - 1 {
		c := make(chan struct{}, 1)
		p.wake = append(p.wake, c)
		go p.help(c)
	}
}

func (p *pool) workers() int { return len(p.wake) + 1 }

func (p *pool) end() {
	for _, c := range p.wake {
		close(c)
	}
}

func (p *pool) help(wake chan struct{}) {
	for await(wake) {
		if !p.join() {
			continue
		}
		p.work()
		if p.busy.Add(-1) == closed {
			p.done <- struct{}{}
		}
	}
}

// join makes its caller one of the job's helpers, and returns false if there is no job that takes any.
func (p *pool) join() bool {
	for {
		busy := p.busy.Load()
		if busy >= closed {
			return false
		}
		if p.busy.CompareAndSwap(busy, busy+1) {
			return true
		}
	}
}

// await waits until something comes out of c, and returns false if c was closed.
func await(c <-chan struct{}) bool {
	for range looks {
		select {
		case _, ok := <-c:
			return ok
		default:
			pause(pauses)
		}
	}
	_, ok := <-c
	return ok
}

// do calls fn for all of 0…n-1, in chunks, and returns when all calls have returned. A panic in fn becomes an
// error; what was not begun by then is left out, as it is when stop is closed, which is no error of do's.
func (p *pool) do(stop <-chan struct{}, n int64, fn func(lo, hi int64)) error {
	p.fn, p.n, p.stop = fn, n, stop
	p.chunk = max(1, n/int64(chunksPerWorker*p.workers()))
	p.next.Store(0)
	p.busy.Store(0)
	for _, c := range p.wake[:min(int64(len(p.wake)), (n-1)/p.chunk)] {
		select {
		case c <- struct{}{}:
		default: // it has not come to run since an earlier job, and joins this one when it does
		}
	}
	p.work()
	if p.busy.Add(closed) > closed {
		await(p.done)
	}
	p.fn, p.stop = nil, nil
	if f := p.failure.Swap(nil); f != nil {
		return *f
	}
	return nil
}

func (p *pool) work() {
	defer func() {
		if r := recover(); r != nil {
			err := fmt.Errorf("the kernel's Go function panicked: %v", r)
			p.failure.CompareAndSwap(nil, &err)
			p.next.Store(p.n)
		}
	}()
	for {
		lo := p.next.Add(p.chunk) - p.chunk
		if lo >= p.n || ended(p.stop) {
			return
		}
		p.fn(lo, min(lo+p.chunk, p.n))
	}
}

// ended reports whether the channel is closed; a nil one never is.
func ended(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
