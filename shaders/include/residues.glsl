// Residues modulo small coprime numbers: see package rfx (formats), residues.go, whose Moduli these are.

#define MOST_MODULI 16

const uint MODULI[MOST_MODULI] =
    uint[MOST_MODULI](256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193);

// The quotient of x < 2^31 and m is the upper word of x times this, shifted right by 7 more: 2^39/m rounded up, whose
// quotient by 2^7 is that of 2^32 and m.
uint reciprocal(uint m) {
    uint quotient = 0xffffffffu / m, left = 0xffffffffu % m + 1; // of 2^32, where m may go once more into what is left
    return (quotient + left / m) * 128 + (left % m * 128 + m - 1) / m;
}

// modulo returns x < 2^31 modulo m.
uint modulo(uint x, uint m, uint reciprocal) {
    uint hi, lo;
    umulExtended(x, reciprocal, hi, lo);
    return x - (hi >> 7) * m;
}

// multiple returns a multiple of m that is at least `least`.
uint multiple(uint m, uint least) { return (least + m - 1) / m * m; }
