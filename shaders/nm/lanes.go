// The packing of units of many rows whose operands are made lane by lane: lanes.comp.

package nm

import (
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/spec"
)

// laneStage is the condensed columns of a stage, to whose multiples panels are padded.
const laneStage = 32

// laneValue is where a panel's value of row r of condensed column k lies, in panels of tall rows, a multiple of 16: by
// 16 columns, then 16 rows, then lane, 8 values each. Lane 4g + t has columns 4t to 4t+3 in row g, then in row g + 8.
func laneValue(tall, k, r int) int {
	return ((k/16*(tall/16)+r/16)*32+r%8*4+k%16/4)*8 + r%16/8*4 + k%4
}

// packLanes brings the values of m, whose panels have a multiple of 16 rows, into that order, and lists the columns of
// panels. Padding has the value 0 and some column that the matrix has.
func packLanes[T formats.Value](m *nm.Matrix[T]) (values []T, columns []uint32, err error) {
	s, err := m.Shape(m.Rows, m.Cols)
	if err != nil {
		return nil, nil, err
	}
	count := s.Slots * m.W
	padded := spec.Ceil(count, laneStage) * laneStage
	if int64(s.Panels)*int64(padded)*int64(m.V) > 1<<32-1 {
		return nil, nil, nm.ErrTooLarge
	}
	values = make([]T, s.Panels*padded*m.V)
	columns = make([]uint32, s.Panels*padded)
	spec.Shares(s.Panels, 1, spec.MemoryCores, func(panel, _ int) {
		from, to := m.Values[panel*count*m.V:], values[panel*padded*m.V:]
		for k, col := range m.Kept(panel) {
			columns[panel*padded+k] = uint32(min(col, m.Cols-1))
			for r := range m.V {
				to[laneValue(m.V, k, r)] = from[k*m.V+r]
			}
		}
	})
	return values, columns, nil
}
