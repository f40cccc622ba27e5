//go:build !linux && !darwin

// Systems that are not asked about the processor.

package cpu

import "os"

func preferHugePages([]byte) {}

func names() (model, vendor string) { return os.Getenv("PROCESSOR_IDENTIFIER"), "" }
