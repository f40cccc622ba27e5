// Column-major operands, for the variants that take them.

package shadertest

import (
	"bytes"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// padding lies between columns: NaN in every type.
const padding = 0xff

// columns returns a row-major matrix of `size` bytes an element column by column, lead elements apart.
func columns(m []byte, size, rows, cols, ld, lead int) []byte {
	out := bytes.Repeat([]byte{padding}, cols*lead*size)
	for i := range rows {
		for j := range cols {
			copy(out[(j*lead+i)*size:][:size], m[(i*ld+j)*size:])
		}
	}
	return out
}

// rows is the way back: it replaces the elements of m, and fails the test where what lies between columns has changed.
func rows(t *testing.T, m, from []byte, size, rows, cols, ld, lead int) {
	t.Helper()
	for j := range cols {
		for i := range lead {
			x := from[(j*lead+i)*size:][:size]
			switch {
			case i < rows:
				copy(m[(i*ld+j)*size:], x)
			case bytes.Count(x, []byte{padding}) != size:
				t.Fatalf("what lies behind column %d of C was written", j)
			}
		}
	}
}

// multiply is Multiply for the case, with B and C in its orders.
func (q Case) multiply(t *testing.T, dev backend.Device, k *spec.Format, v *spec.Variant, x *built,
	change func(*spec.Launch)) {
	t.Helper()
	b, c, p := x.b, x.c, x.p
	if q.BCol {
		p.BCol, p.LDB = true, (q.K+7)&^7+8
		b = columns(b, v.In.Size(), q.K, q.N, x.p.LDB, p.LDB)
	}
	if q.CCol {
		p.CCol, p.LDC = true, p.M+q.LDC%4
		c = columns(c, p.Out.Size(), p.M, q.N, x.p.LDC, p.LDC)
	}
	Multiply(t, dev, k, v, x.a, b, x.bias, c, p, change)
	if q.CCol {
		rows(t, x.c, c, p.Out.Size(), p.M, q.N, x.p.LDC, p.LDC)
	}
}
