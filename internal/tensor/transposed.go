// Tensors seen as their transposes, which lie in the same memory in the other order.

package tensor

// Transposed returns the tensor's transpose, which lies in the same memory. There is one of each tensor.
func (t *Tensor) Transposed() *Tensor {
	switch {
	case t == nil:
		return nil
	case t.of != nil:
		return t.of
	}
	t.turn.Do(func() { t.view = &Tensor{Shape: t.Shape.Transposed(), device: t.device, foreign: t.foreign, of: t} })
	return t.view
}

// Transposed returns how the transpose lies.
func (s Shape) Transposed() Shape {
	return Shape{Rows: s.Cols, Cols: s.Rows, Type: s.Type, ColMajor: !s.ColMajor, RowBlock: s.ColBlock,
		ColBlock: s.RowBlock}
}
