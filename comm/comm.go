// Package comm exchanges data between the ranks of a job. Ranks are processes on one machine or many; each holds a
// share of a matrix.
//
// Comm is the interface. comm/mpi implements it with the MPI library that launched the program, comm/local with
// goroutines, for tests and for a job of one rank. Package commtest is the contract as code, which the tests of every
// implementation run.
//
// DeviceComm exchanges data between the memories of the ranks' devices. comm/nccl implements it, and Staged, which goes
// through the host's memory.
//
// All operations are collective: every rank of a Comm calls the same operations in the same order. A call returns when
// this rank's part of the operation is done. Data are bytes, counted in items of a size that the caller gives.
// Reductions are of integers only, whose sums do not depend on the order in which an implementation adds them. So
// results have the same bits for any number of ranks.
//
// After an error of an operation ranks are out of step. A rank that gets one must end the job with Abort, or the other
// ranks wait for ever. If one rank has an error of its own, Agree has all ranks return one.
package comm

import (
	"errors"
	"fmt"
)

// Comm is a group of ranks, seen from one of them. One goroutine at a time may use it.
type Comm interface {
	// Rank is the number of this rank, from 0.
	Rank() int
	// Size is the number of ranks.
	Size() int
	// Barrier returns once all ranks have called it.
	Barrier() error
	// Bcast copies root's data to all ranks; data has the same length on each.
	Bcast(data []byte, root int) error
	// AllReduce replaces each element of data by the reduction of that element over all ranks; data has the same length on
	// each.
	AllReduce(data []int64, op Op) error
	// AllToAllV sends part sent[r] of send to rank r, and receives part received[r] of recv from rank r. Both ranks give
	// the same count. Parts of recv must not overlap. Items between them are not changed.
	AllToAllV(item int, send []byte, sent []Part, recv []byte, received []Part) error
	// AllGatherV sends all of send to every rank, and receives parts[r] of recv from rank r. All ranks give the same
	// parts.
	AllGatherV(item int, send, recv []byte, parts []Part) error
	// Abort ends all ranks of the job with an exit code. If ranks are goroutines, it makes all their calls return
	// ErrAborted. It is the only call that is not collective. Any goroutine may call it.
	Abort(code int)
	// Close frees the Comm. That of the whole job is closed last.
	Close() error
}

// Op is a reduction of integers.
type Op int

// The reductions.
const (
	Sum Op = iota // modulo 2⁶⁴
	Max
)

// Part is a range of items in a buffer that one rank sends or receives: Count items from item Start on.
type Part struct{ Start, Count int }

// Follow returns parts of the given counts that follow each other, from item 0 on.
func Follow(counts ...int) []Part {
	parts, at := make([]Part, len(counts)), 0
	for i, n := range counts {
		parts[i] = Part{at, n}
		at += n
	}
	return parts
}

// End returns the end of the last of the parts, in items.
func End(parts []Part) int {
	end := 0
	for _, p := range parts {
		end = max(end, p.Start+p.Count)
	}
	return end
}

// Errors, to be tested with errors.Is.
var (
	ErrAborted     = errors.New("the job was aborted")
	ErrUnavailable = errors.New("not available") // no library for it, or not this one
)

// Memory is implemented by a Comm whose transfers need memory that it allocates, or are fastest with it.
type Memory interface {
	// Alloc returns zeroed memory, and what frees it.
	Alloc(bytes int) ([]byte, func(), error)
}

// Alloc returns zeroed memory for data that c transfers, and a function that frees it. No slice of the memory may be
// used after that.
func Alloc(c Comm, bytes int) ([]byte, func(), error) {
	if m, ok := c.(Memory); ok && bytes > 0 {
		return m.Alloc(bytes)
	}
	return make([]byte, bytes), func() {}, nil
}

// RankError is an error that another rank had.
type RankError struct {
	Rank int
	Text string
	Code int // what Agree's code made of it
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d: %s", e.Rank, e.Text) }

// Agree tells every rank whether all have succeeded. Each gives its own error, or nil. If any rank has an error, all
// return one: a rank with an error returns that, the others a RankError of the lowest rank that has one. code returns a
// small non-negative number for an error, which the RankError carries; code may be nil.
func Agree(c Comm, err error, code func(error) int) error {
	if c.Size() == 1 {
		return err
	}
	// The maximum over ranks of Size − Rank where there is an error finds the lowest rank with one.
	state := []int64{0, 0, 0}
	if err != nil {
		state[0] = int64(c.Size() - c.Rank())
	}
	if err := c.AllReduce(state[:1], Max); err != nil {
		return err
	}
	if state[0] == 0 {
		return nil
	}
	first := c.Size() - int(state[0])
	var text []byte
	if c.Rank() == first {
		text = []byte(err.Error())
		state[1] = int64(len(text))
		if code != nil {
			state[2] = int64(code(err))
		}
	}
	if err := c.AllReduce(state[1:], Max); err != nil {
		return err
	}
	if c.Rank() != first {
		text = make([]byte, state[1])
	}
	if err := c.Bcast(text, first); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	return &RankError{Rank: first, Text: string(text), Code: int(state[2])}
}
