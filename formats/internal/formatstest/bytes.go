// What fuzz targets make matrices of.

package formatstest

// Bytes hands out what a fuzz target is given, and then zeros.
type Bytes []byte

// Next returns the next byte.
func (b *Bytes) Next() uint32 {
	if len(*b) == 0 {
		return 0
	}
	x := (*b)[0]
	*b = (*b)[1:]
	return uint32(x)
}

// Int is Next as an int.
func (b *Bytes) Int() int { return int(b.Next()) }

// Each returns n bytes, each as a number.
func (b *Bytes) Each(n int) (x []uint32) {
	for range n {
		x = append(x, b.Next())
	}
	return x
}

// Words returns n numbers of four bytes, the lowest first.
func (b *Bytes) Words(n int) (x []uint32) {
	for range n {
		x = append(x, b.Next()|b.Next()<<8|b.Next()<<16|b.Next()<<24)
	}
	return x
}
