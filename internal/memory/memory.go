// Package memory tells how much memory this process may take, so that what does not fit is refused in words
// rather than ended by the system.
package memory

import (
	"sync/atomic"
	"time"
)

// fresh is how long an answer holds: to ask takes Linux as long as to fill some hundred KiB.
const fresh = 10 * time.Millisecond

// answer is the system's.
type answer struct {
	bytes int64
	at    time.Time
}

var latest atomic.Pointer[answer]

// Available returns the bytes this process may still take without pushing others out: what the system calls available,
// and less if one of the control groups that hold the process, or its address space, is bounded. 0: unknown. It is the
// system's answer of at most 10 ms ago.
func Available() int64 {
	a := latest.Load()
	if a == nil || time.Since(a.at) >= fresh {
		a = &answer{available(), time.Now()}
		latest.Store(a)
	}
	return a.bytes
}

// Total returns the bytes of memory this process can ever have. 0: unknown.
func Total() int64 { return total() }
