//go:build cuda && cgo && linux && (amd64 || arm64)

package cuda

import "github.com/spmmrun/spmm/backend"

// Graphs returns how many graphs a recording is.
func Graphs(r backend.Recording) int { return len(r.(*recording).parts) }
