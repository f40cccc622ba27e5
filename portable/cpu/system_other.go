//go:build !linux && !darwin

// Systems that say nothing of the processor here.

package cpu

import "os"

func preferHugePages([]byte) {}

func names() (model, vendor string) { return os.Getenv("PROCESSOR_IDENTIFIER"), "" }
