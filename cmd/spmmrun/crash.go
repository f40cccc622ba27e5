// Crashes: whatever ends the process that is no error of the user's ends with a code of its own. Go's runtime exits
// with 2, which is for bad input.

package main

import (
	"fmt"
	"os"
	"runtime/debug"
)

// exitCrash is EX_SOFTWARE of sysexits.h.
const exitCrash = 70

// crash is a panic.
type crash struct {
	what  any
	stack []byte
}

func (c *crash) Error() string {
	return fmt.Sprintf("crashed: %v: this is a mistake of spmmrun's or of a GPU's driver, not of the input", c.what)
}

// recovered returns what f does, and a panic in it as a crash.
func recovered(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &crash{r, debug.Stack()}
		}
	}()
	return f()
}

// abortOnCrash has the runtime end the process by SIGABRT where it would exit with 2: after a panic in another
// goroutine, or a fault in a driver's code. With cgo crash.c makes exit code 70 of that. GOTRACEBACK leaves all as Go
// has it.
func abortOnCrash() {
	if os.Getenv("GOTRACEBACK") == "" {
		debug.SetTraceback("crash")
	}
}
