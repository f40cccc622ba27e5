// A sparse matrix's entries as integers in memory.

package rfx

import (
	"encoding/binary"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Size returns the bytes of a quantised element in memory: 2 at p = 15, 4 at 23 and 31, 8 at 47.
func (p P) Size() int {
	switch p {
	case P15:
		return 2
	case P47:
		return 8
	}
	return 4
}

// Put writes a quantised element, little-endian: an int16, an int32, or at p = 47 two int32, balanced
// digits of 24 bits, the lower first.
func (p P) Put(b []byte, q int64) {
	switch p {
	case P15:
		binary.LittleEndian.PutUint16(b, uint16(q))
	case P47:
		var d [2]int32
		Digits(d[:], q, 24)
		binary.LittleEndian.PutUint32(b, uint32(d[0]))
		binary.LittleEndian.PutUint32(b[4:], uint32(d[1]))
	default:
		binary.LittleEndian.PutUint32(b, uint32(q))
	}
}

// Pack quantises a's entries, given the ranges of its rows, in the order of a.Val. What is not finite is
// written as 0, and zeros follow up to a multiple of four entries.
func Pack[T formats.Value](a *formats.CSR[T], rows []Range, p P) []byte {
	out := make([]byte, (len(a.Val)+3)/4*4*p.Size())
	par.Rows(a.RowPtr, 1<<14, func(lo, hi int) {
		var buf [256]float32
		for i := lo; i < hi; i++ {
			l, b := p.L(rows[i].E()), out[int(a.RowPtr[i])*p.Size():]
			for v := a.Val[a.RowPtr[i]:a.RowPtr[i+1]]; len(v) > 0; {
				x := buf[:min(len(v), len(buf))]
				formats.ConvertSlice(x, v[:len(x)])
				v = v[len(x):]
				for _, x := range x {
					if IsFinite(x) {
						p.Put(b, Quantise(x, l))
					}
					b = b[p.Size():]
				}
			}
		}
	})
	return out
}
