// Cutting quantised elements into digits for units that multiply small integers, and putting sums
// together again.

package rfx

// Digits cuts q into len(d) balanced digits of the given number of bits, the lowest first: each lies in
// [−2^(bits−1), 2^(bits−1)) but the last, which takes what is left. With bits = 8 and p.Bytes() digits,
// or 24 and 2 for p = 47, every digit of a quantised element fits a signed number of that size.
func Digits(d []int32, q int64, bits int) {
	for i := range d[:len(d)-1] {
		x := q << (64 - bits) >> (64 - bits)
		d[i] = int32(x)
		q = (q - x) >> bits
	}
	d[len(d)-1] = int32(q)
}

// Combine returns Σ acc[d]·2^(bits·d): the sum of products from the sums, for each d, of the products of
// all pairs of digits i of one operand and j of the other with i + j = d.
func Combine(acc []int64, bits int) Int128 {
	var t Int128
	for d := len(acc) - 1; d >= 0; d-- {
		t = t.Shl(uint(bits)).Add(Int(acc[d]))
	}
	return t
}

// MaxTerms returns how many entries' products an accumulator of accBits bits (32 or 64) holds for sure,
// when both operands are cut into n digits of the given number of bits and each diagonal has one
// accumulator: a digit is at most 2^(bits−1) in magnitude, and n products are summed for each entry.
func MaxTerms(bits, n, accBits int) int64 {
	return (1<<(accBits-1-2*(bits-1)) - 1) / int64(n)
}
