// Do lanes find their values where panel_lanes.glsl looks for them?

package panel

import "testing"

// TestInOrder: lane 4g + t of step s has 4·v/8 values from (32·s + lane)·4·v/8 on, those of vectors 4t to 4t + 3 of the
// step in row g, then in row g + 8.
func TestInOrder(t *testing.T) {
	for _, v := range []int{8, 16} {
		const vectors = 48
		values := make([]float32, vectors*v)
		for i := range values {
			values[i] = float32(i)
		}
		if got := inOrder(values, v, false); &got[0] != &values[0] {
			t.Errorf("v=%d: values are copied that are to stay as they are", v)
		}
		got, each := inOrder(values, v, true), 4*v/8
		for step := range vectors / 16 {
			for lane := range 32 {
				for i := range each {
					vector, row := 16*step+4*(lane%4)+i%4, lane/4+8*(i/4)
					if x := got[(32*step+lane)*each+i]; x != float32(vector*v+row) {
						t.Fatalf("v=%d: lane %d of step %d has value %v as its number %d, want vector %d, row %d", v, lane, step, x, i, vector, row)
					}
				}
			}
		}
	}
}
