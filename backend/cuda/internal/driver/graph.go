//go:build cuda && cgo && linux && (amd64 || arm64)

// Graphs: launches that the driver prepares once, to be submitted in one call.

package driver

/*
#include "queue.h"
*/
import "C"

import "unsafe"

// Graph is a chain of launches; each runs after the one before.
type Graph struct{ c *C.spmm_graph }

// NewGraph returns a graph without launches.
func NewGraph() Graph { return Graph{(*C.spmm_graph)(C.calloc(1, C.sizeof_spmm_graph))} }

// AddTo moves the launches that were added to the queue into a graph, which has its own copy of their parameters.
func (q *Queue) AddTo(g Graph) error { return check(C.spmm_graph_add(q.c, g.c)) }

// Make makes a graph with all its launches ready for SetGraph. SymbolNotFound: the driver is older than CUDA 11.4.
func (q *Queue) Make(g Graph) error { return check(C.spmm_graph_make(q.c, g.c)) }

// SetGraph makes a graph the next batch.
func (q *Queue) SetGraph(g Graph) { q.c.graph = g.c }

// Destroy frees the graph, which is not running; its context must be current.
func (g Graph) Destroy() error {
	err := check(C.spmm_graph_destroy(g.c))
	C.free(unsafe.Pointer(g.c))
	return err
}
