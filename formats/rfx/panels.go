// A sparse matrix's panels as digits, for units that multiply matrices of 8-bit integers.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Tile is the vectors of a panel whose digits lie together.
const Tile = 32

// PackPanels quantises the entries of m, given the ranges of its rows, and cuts them into p.Bytes() balanced
// digits of 8 bits. m's panels must be padded to multiples of Tile vectors. For each tile, for each digit, the
// lowest first, for each of the panel's m.V rows, there are Tile bytes: one for each vector. What is not
// finite, and what is no entry, is 0.
func PackPanels[T formats.Value](m *cvse.Matrix[T], rows []Range, p P) ([]byte, error) {
	if m.Align%Tile != 0 || len(rows) != m.Rows {
		return nil, fmt.Errorf("rfx: panels of a multiple of %d vectors with %d ranges of %d rows: want %d", m.Align, len(rows), m.Rows, Tile)
	}
	out := make([]byte, len(m.Values)*p.Bytes())
	par.Each(cvse.Panels(m.Rows, m.V), 4, func(panel int) {
		units := make([]int, m.V)
		for r := range units {
			if row := panel*m.V + r; row < m.Rows {
				units[r] = p.L(rows[row].E())
			}
		}
		for v := int(m.VecPtr[panel]); v < int(m.VecPtr[panel+1]); v += Tile {
			packTile(out[v*m.V*p.Bytes():][:Tile*m.V*p.Bytes()], m.Values[v*m.V:][:Tile*m.V], units, p)
		}
	})
	return out, nil
}

// packTile writes the digits of a tile's values, vector after vector, of rows with these units.
func packTile[T formats.Value](out []byte, values []T, units []int, p P) {
	var x [Tile * cvse.MaxV]float32
	var d [8]int32
	formats.ConvertSlice(x[:len(values)], values)
	v, s := len(units), p.Bytes()
	for i, x := range x[:len(values)] {
		if x == 0 || !IsFinite(x) {
			continue
		}
		Digits(d[:s], Quantise(x, units[i%v]), 8)
		for j, digit := range d[:s] {
			out[(j*v+i%v)*Tile+i/v] = byte(digit)
		}
	}
}
