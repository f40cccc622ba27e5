//go:build !linux && !darwin

// Systems that are not asked about the processor and its memory.

package cpu

import "os"

func preferHugePages([]byte) {}

func names() (model, vendor string) { return os.Getenv("PROCESSOR_IDENTIFIER"), "" }

func available() int64 { return 1 << 40 } // a bound, since Go's heap ends the process where there is no more

func total() int64 { return 0 }
