// 2:4 of single entries, which weights are pruned to most: a row's groups one entry after the other.

package nm

import "github.com/spmmrun/spmm/formats"

// empty24 is the places of eight groups without entries, which keep their first two units.
const empty24 = 0x44444444

// fill24 is fill for Sparse24, and reports whether row i obeys it.
func (m *Matrix[T]) fill24(a *formats.CSR[T], s Shape, i int) bool {
	values := m.Values[i*s.Columns:][:s.Columns]
	index, mask := m.Index[i*s.IndexWords:][:s.IndexWords], m.Mask[i*s.MaskWords:][:s.MaskWords]
	for w := range index {
		index[w] = empty24
	}
	if rest := s.Groups % 8; rest > 0 {
		index[s.IndexWords-1] &= 1<<(4*rest) - 1
	}
	cols, from := a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]], a.Val[a.RowPtr[i]:a.RowPtr[i+1]]
	for e := 0; e < len(cols); {
		g, place := int(cols[e]/4), uint32(cols[e]%4)
		slot := 2 * g
		var places uint32
		switch {
		case e+1 < len(cols) && int(cols[e+1]/4) == g:
			if e+2 < len(cols) && int(cols[e+2]/4) == g {
				return false
			}
			places = place | uint32(cols[e+1]%4)<<2
			values[slot], values[slot+1] = from[e], from[e+1]
			mask[slot/32] |= 3 << (slot % 32)
			e += 2
		case place == 0: // and 1 is kept with it
			places = 1 << 2
			values[slot] = from[e]
			mask[slot/32] |= 1 << (slot % 32)
			e++
		default: // after 0
			places = place << 2
			values[slot+1] = from[e]
			mask[slot/32] |= 2 << (slot % 32)
			e++
		}
		index[g/8] ^= (places ^ empty24&15) << (g % 8 * 4)
	}
	return true
}
