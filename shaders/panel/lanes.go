// The order of values that panel_lanes.glsl reads.

package panel

import "github.com/spmmrun/spmm/formats"

// inOrder returns the values of panels of v rows, of a multiple of 16 vectors each, in the order that a variant reads:
// as they are, or as lanes of a matrix unit hold them.
func inOrder[T formats.Value](values []T, v int, lanes bool) []T {
	if !lanes {
		return values
	}
	to := make([]T, len(values))
	halves := v / 8
	for i := range to {
		step, at := i/(16*v), i%(16*v)
		lane, half, vector := at/(4*halves), at/4%halves, at%4
		to[i] = values[step*16*v+(lane%4*4+vector)*v+8*half+lane/4]
	}
	return to
}
