// The roofline: what a multiplication moves and computes, and the least time that a device's rates allow for it.

package model

import (
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Work is the bytes and operations of one multiplication.
type Work struct {
	Bytes  int64 // read and written at least once: A as stored, B, C
	Gather int64 // bytes of B's rows as they are fetched
	FLOPs  int64 // executed: two for each multiply-add, padding included
	B      int64 // bytes of B that are read
}

// NewWork counts a product by n columns that fetches a number of rows of B. All of B is read where whole blocks of it
// are brought to shared memory (Stats.Staged), else no more rows than are fetched.
func NewWork(rows, cols, n int, prec dtype.Type, s formats.Stats, fetched int64, out dtype.Type) Work {
	row, read := int64(n)*int64(prec.Storage().Size()), int64(cols)
	if !s.Staged {
		read = min(read, fetched)
	}
	return Work{
		Bytes:  s.StoredBytes + read*row + int64(rows)*int64(n)*int64(out.Size()),
		Gather: fetched * row,
		FLOPs:  2 * s.MACs * int64(n),
		B:      read * row,
	}
}

// Fetched is the rows of B that come from beyond a unit's own cache, nearby being those that rows near
// each other do not share.
func Fetched(s formats.Stats, nearby int64) int64 {
	if s.Staged {
		return s.Gathers
	}
	return min(s.Gathers, nearby)
}

// Bound returns the least times of a variant's work.
func (r *Rates) Bound(v *spec.Variant, w Work) api.Bound {
	return api.Bound{
		Memory:  at(w.Bytes, r.stream(w.Bytes)),
		Gather:  at(w.Gather, r.Cache),
		Compute: at(w.FLOPs, r.arithmetic(v)),
	}
}

// at is the time that n units take at a rate per second, 0 if the rate is unknown.
func at(n int64, rate float64) time.Duration {
	if rate <= 0 {
		return 0
	}
	return time.Duration(float64(n) / rate * float64(time.Second))
}
