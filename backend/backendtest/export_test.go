// What the contract's own test changes.

package backendtest

import "time"

// Shorten makes long launches take another time.
func Shorten(to time.Duration) { long, soon = to, to/4 }
