package backend

import (
	"syscall"
	"time"
)

// nap sleeps for a time below a millisecond, to some 50 µs. time.Sleep takes a millisecond where nothing else is to be
// done.
func nap(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&t, nil) // a signal ends it sooner
}
