//go:build !linux

package backend

import "time"

// nap sleeps for a short time.
func nap(d time.Duration) { time.Sleep(d) }
